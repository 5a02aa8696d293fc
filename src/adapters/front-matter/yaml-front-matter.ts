import { type Document, parseDocument, visit } from 'yaml';
import type { FrontMatterProblem } from '../../domain/microagent.ts';
import type { FrontMatter } from '../../ports/front-matter.ts';

const maxLength = 16_384;

// OpenHands skips white space before it. But there, the line can also be a rule in the text.
const opening = /^\s*---[ \t]*\r?\n/u;
const closing = /(?:^|\r?\n)---[ \t]*(?:\r?\n|$)/u;

// As in PyYAML, the last value of a repeated key counts. Values with tags such as `!!binary` stay texts, lists and mappings.
const options = { uniqueKeys: false, resolveKnownTags: false, intAsBigInt: true, logLevel: 'error' } as const;

export function parseYamlFrontMatter(text: string): FrontMatter {
  const first = opening.exec(text)?.[0];
  if (first === undefined) return { content: text, data: null, problem: null };
  const mayBeRule = !first.startsWith('-');
  const broken = (problem: FrontMatterProblem, line: number | null = null): FrontMatter =>
    ({ content: text, data: null, problem: mayBeRule ? null : { code: 'front_matter', problem, line } });
  const rest = text.slice(first.length);
  const last = closing.exec(rest);
  if (last === null) return broken('not_closed');
  if (last.index > maxLength) return broken('too_long');
  try {
    const document = parseDocument(rest.slice(0, last.index), options);
    const [error] = document.errors;
    // Line 1 is the opening `---`.
    if (error !== undefined) return broken('not_yaml', (error.linePos?.[0].line ?? 0) + 1);
    if (hasAlias(document)) return broken('alias');
    keepAsWritten(document);
    // Converted through JSON, so a response can carry every value.
    const data: unknown = JSON.parse(JSON.stringify(document.toJS() ?? {}));
    if (typeof data !== 'object' || data === null || Array.isArray(data)) return broken('not_a_mapping');
    return { content: rest.slice(last.index + last[0].length), data: { ...data }, problem: null };
  } catch {
    // The document is nested too deeply for the stack.
    return broken('not_yaml');
  }
}

/**
 * Integers that are not safe and numbers that are not finite become the text in the document. Other numbers are rounded, as readers of JSON
 * do it.
 */
function keepAsWritten(document: Document): void {
  visit(document, {
    Scalar(_, node) {
      const { value, source } = node;
      if (typeof value !== 'bigint' && typeof value !== 'number') return;
      const isKept = typeof value === 'bigint' ? Number.isSafeInteger(Number(value)) : Number.isFinite(value);
      node.value = isKept ? Number(value) : source;
    },
  });
}

/** A few nested aliases can expand to more data than fits into memory. */
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
