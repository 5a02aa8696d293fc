import { type Document, parseDocument, visit } from 'yaml';
import type { FrontMatterProblem } from '../../domain/microagent.ts';
import type { FrontMatter } from '../../ports/front-matter.ts';

const maxLength = 16_384;

const opening = /^---[ \t]*\r?\n/u;
const closing = /(?:^|\n)---[ \t]*(?:\r?\n|$)/u;

export function parseYamlFrontMatter(text: string): FrontMatter {
  const first = opening.exec(text)?.[0];
  if (first === undefined) return { content: text, data: null, problem: null };
  const broken = (problem: FrontMatterProblem, line: number | null = null): FrontMatter =>
    ({ content: text, data: null, problem: { code: 'front_matter', problem, line } });
  const rest = text.slice(first.length);
  const last = closing.exec(rest);
  if (last === null) return broken('not_closed');
  if (last.index > maxLength) return broken('too_long');
  try {
    // As in PyYAML, of a key that stands twice the last one counts.
    const document = parseDocument(rest.slice(0, last.index), { uniqueKeys: false, logLevel: 'error' });
    const [error] = document.errors;
    // The first line is that of the opening.
    if (error !== undefined) return broken('not_yaml', (error.linePos?.[0].line ?? 0) + 1);
    if (hasAlias(document)) return broken('alias');
    // In JSON, so that nothing is left that an answer could not carry, such as a number without an end.
    const data: unknown = JSON.parse(JSON.stringify(document.toJS() ?? {}));
    if (typeof data !== 'object' || data === null || Array.isArray(data)) return broken('not_a_mapping');
    return { content: rest.slice(last.index + last[0].length), data: { ...data }, problem: null };
  } catch {
    // It is nested too deeply for the stack.
    return broken('not_yaml');
  }
}

/** A few aliases of aliases stand for more than fits into memory. */
function hasAlias(document: Document): boolean {
  let found = false;
  visit(document, {
    Alias() {
      found = true;
      return visit.BREAK;
    },
  });
  return found;
}
