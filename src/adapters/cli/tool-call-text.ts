import { structuredPatch } from 'diff';
import { commandName } from '../../client/command-name.ts';
import type { api } from '../../client/index.ts';
import { safeLine, safeText } from './safe-text.ts';

type Content = api.ToolCallEventData['content'];
type Diff = Extract<Content[number], { readonly type: 'diff' }>;

/** Some screenfuls. */
const maxLines = 100;
const maxLineLength = 500;

/** With more differing lines, the whole text is shown as replaced. */
const maxEditLength = 2000;

/** What the server writes at the end of a text of which it keeps only the beginning. */
const cutText = /\[\.\.\. \d+ more\]$/;

/** Returns the content of a tool call as lines behind a bar. A diff is shown as added and removed lines. */
export function contentLines(content: Content, conversationId: string | null): string[] {
  return barred(content.flatMap((part) => (part.type === 'text' ? linesOf(part.text) : diffLines(part))), conversationId);
}

/** Returns the sentence with the title. A title of several lines, for example a script, is put below, because line feeds have a meaning. */
export function titleLines(sentence: string, title: string, conversationId: string | null): string[] {
  const lines = linesOf(title.trim());
  const [only = ''] = lines;
  if (lines.length === 1 && only.length <= maxLineLength) return [`${sentence}: ${safeText(only)}`];
  return [`${sentence}:`, ...barred(lines, conversationId)];
}

/** The bar keeps the text of the agent apart from the lines of the program. A text that is too long is cut, with a note. */
function barred(lines: readonly string[], conversationId: string | null): string[] {
  const shown = lines.slice(0, maxLines).map(safeText);
  const isCut = shown.length < lines.length || shown.some((line) => line.length > maxLineLength);
  const left = lines.length > maxLines ? `, ${lines.length - maxLines} more lines` : '';
  const follow = `${commandName} conversations follow ${conversationId} --json`;
  return [
    ...shown.map((line) => `  | ${cutLine(line)}`.trimEnd()),
    ...(isCut ? [`  This is cut${left}. All of it: in the dashboard, or by ${follow}`] : []),
  ];
}

function cutLine(line: string): string {
  const left = line.length - maxLineLength;
  return left > 0 ? `${line.slice(0, maxLineLength).toWellFormed()} [... ${left} more]` : line;
}

function diffLines({ path, old_text: before, new_text: after }: Diff): string[] {
  const name = safeLine(path);
  const patch = structuredPatch('', '', before ?? '', after, '', '', { context: 3, maxEditLength });
  const changes = patch === undefined
    ? [...linesOf(before ?? '').map((line) => `-${line}`), ...linesOf(after).map((line) => `+${line}`)]
    // Without git's note about a missing line feed at the end: the texts are often parts of the file.
    : patch.hunks.flatMap(({ lines }) => ['@@', ...lines.filter((line) => !line.startsWith('\\'))]);
  const cut = [before ?? '', after].some((text) => cutText.test(text)) ? ['The server has only the beginning of this file.'] : [];
  return [before === null ? '--- /dev/null' : `--- ${name}`, `+++ ${name}`, ...changes, ...cut];
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split(/\r\n?|\n/);
}
