import { structuredPatch } from 'diff';
import { plural } from '../format.ts';

export interface DiffLine {
  readonly mark: ' ' | '+' | '-' | '@';
  readonly text: string;
}

/** With more differing lines, the whole text is shown as replaced. */
const maxEditLength = 2000;

const hunkSeparator: DiffLine = { mark: '@', text: '⋯' };

/** Compares two texts line by line. Returns the differences with some context. */
export function diffLines(before: string, after: string): DiffLine[] {
  const patch = structuredPatch('', '', before, after, '', '', { context: 3, maxEditLength });
  if (patch === undefined) return [...linesOf(before).map((line) => `-${line}`), ...linesOf(after).map((line) => `+${line}`)].map(lineOf);
  return patch.hunks.flatMap(({ lines }, index) => [...(index === 0 ? [] : [hunkSeparator]), ...lines.filter(isShown).map(lineOf)]);
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

/** Returns false for git's note about a missing line feed at the end. */
function isShown(line: string): boolean {
  return !line.startsWith('\\');
}

function lineOf(line: string): DiffLine {
  const mark = line.charAt(0);
  if (mark === '@') return { mark, text: line };
  return { mark: mark === '+' || mark === '-' ? mark : ' ', text: line.slice(1) };
}

/** Parses a git patch and omits its header. */
export function patchLines(patch: string): DiffLine[] {
  const lines = linesOf(patch);
  const first = lines.findIndex((line) => line.startsWith('@@'));
  return first === -1 ? [] : lines.slice(first).filter(isShown).map(lineOf);
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
        {lines.length > maxShown && <span class="place">… {plural(lines.length - maxShown, 'more line')}</span>}
      </pre>
    </figure>
  );
}
