import { texts } from '../texts.ts';

export interface DiffLine {
  readonly mark: ' ' | '+' | '-' | '@';
  readonly text: string;
}

const contextLines = 3;
/** Above that many comparisons, all that differs is shown as replaced. */
const maxComparisons = 2_000_000;

/** Compares two texts line by line. Returns what differs with a little around it. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = changed(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const around = (from: number, to: number): DiffLine[] => a.slice(Math.max(0, from), to).map((text) => ({ mark: ' ', text }));
  return [...around(start - contextLines, start), ...middle, ...around(a.length - end, Math.min(a.length, a.length - end + contextLines))];
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

/** Keeps the longest common lines. */
function changed(a: readonly string[], b: readonly string[]): DiffLine[] {
  if (a.length * b.length > maxComparisons) {
    return [...a.map((text) => ({ mark: '-' as const, text })), ...b.map((text) => ({ mark: '+' as const, text }))];
  }
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ mark: ' ', text: a[i++] ?? '' });
      j += 1;
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) lines.push({ mark: '-', text: a[i++] ?? '' });
    else lines.push({ mark: '+', text: b[j++] ?? '' });
  }
  return lines;
}

/** Reads a patch of git, without its header. */
export function patchLines(patch: string): DiffLine[] {
  const lines = linesOf(patch);
  const first = lines.findIndex((line) => line.startsWith('@@'));
  return (first === -1 ? [] : lines.slice(first)).map((line): DiffLine => {
    const mark = line.charAt(0);
    if (mark === '@') return { mark, text: line };
    return { mark: mark === '+' || mark === '-' ? mark : ' ', text: line.slice(1) };
  });
}

const names = { '+': 'added', '-': 'removed', '@': 'place', ' ': 'same' } as const;
const maxShown = 2000;

export function DiffView({ title, lines }: { readonly title?: string; readonly lines: readonly DiffLine[] }) {
  return (
    <figure class="diff">
      {title !== undefined && <figcaption>{title}</figcaption>}
      <pre tabIndex={0}>
        {lines.slice(0, maxShown).map(({ mark, text }, index) => (
          <span key={index} class={names[mark]}><i aria-hidden="true">{mark === '@' ? ' ' : mark}</i>{text}{'\n'}</span>
        ))}
        {lines.length > maxShown && <span class="place">{texts.diffCut(lines.length - maxShown)}</span>}
      </pre>
    </figure>
  );
}
