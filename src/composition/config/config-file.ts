import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document, type YAMLError } from 'yaml';
import type { Mistake } from './mistakes.ts';
import type { ConfigProblem } from './config-error.ts';

type Path = readonly PropertyKey[];

/** The file that `SKEP_CONFIG` names, as it is written. */
export interface ConfigFile {
  readonly keys: Readonly<Record<string, unknown>>;
  /** Why nothing of it can be used. */
  readonly problems: readonly ConfigProblem[];
  /** Fields that are written twice. */
  readonly mistakes: readonly Mistake[];
  readonly path: string;
  /** The line of a field, or, where it is missing, of what it would be in; counted from 1. */
  lineOf(path: Path): number;
}

const pathForm = 'the path of a YAML or JSON file, for example /etc/skep.yaml';
const contentForm = 'a file in YAML or JSON with a mapping at its top, for example the one line: port: 3000';

/** Reads the file; an empty one, and none, hold nothing. */
export function readConfigFile(path = ''): ConfigFile {
  const unusable = (problem: string, line = 1): ConfigProblem => ({ name: 'SKEP_CONFIG', problem, form: contentForm, place: `${path}:${line}` });
  const empty = { keys: {}, problems: [], mistakes: [], path, lineOf: () => 1 };
  if (path === '') return empty;
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    return { ...empty, problems: [{ name: 'SKEP_CONFIG', problem: `names the file ${resolve(path)}, which ${reasonOf(error)}`, form: pathForm }] };
  }
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false, uniqueKeys: false, logLevel: 'error' });
  const broken = [...document.errors, ...document.warnings];
  if (broken.length > 0) {
    return { ...empty, problems: broken.map((error) => unusable(syntaxProblem(error), counter.linePos(error.pos[0]).line)) };
  }
  const keys = contentOf(document);
  if (typeof keys === 'string') return { ...empty, problems: [unusable(keys)] };
  return { ...empty, keys, ...placesIn(document, counter) };
}

/** The library's own words, but for those that are meant for programmers. */
function syntaxProblem({ code, message }: YAMLError): string {
  if (code === 'MULTIPLE_DOCS') return 'holds several documents; keep one';
  return code === 'TAG_RESOLVE_FAILED' ? `has a tag that Skep does not know (${message})` : `is not valid YAML: ${message}`;
}

const reasons: Readonly<Record<string, string>> = { ENOENT: 'does not exist', EACCES: 'this user may not read', EISDIR: 'is a folder' };

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  return `${reasons[code] ?? "can't be read"} (${code})`;
}

/** The mapping at the top; a text says why there is none. */
function contentOf(document: Document): Readonly<Record<string, unknown>> | string {
  try {
    const content: unknown = document.toJS() ?? {};
    return typeof content === 'object' && content !== null && !Array.isArray(content) ? { ...content } : 'has no mapping at its top';
  } catch (error) {
    return `is not valid YAML: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Where each field is written, and which are written twice. */
function placesIn(document: Document, counter: LineCounter): Pick<ConfigFile, 'lineOf' | 'mistakes'> {
  const lines = new Map<string, number>();
  const mistakes: Mistake[] = [];

  function visit(node: unknown, path: Path): void {
    if (isSeq(node)) node.items.forEach((item, index) => note(item, item, [...path, index]));
    if (!isMap(node)) return;
    for (const { key, value } of node.items) {
      const field = [...path, String(isScalar(key) ? key.value : key)];
      const first = lines.get(JSON.stringify(field));
      if (first !== undefined) mistakes.push({ path: field, problem: `is written twice, in line ${first} too; keep one of the two` });
      // What holds is what was written last.
      for (const id of lines.keys()) if (id.startsWith(JSON.stringify([...field, '']).slice(0, -3))) lines.delete(id);
      note(key, value, field);
    }
  }

  function note(at: unknown, node: unknown, path: Path): void {
    const offset = typeof at === 'object' && at !== null && 'range' in at && Array.isArray(at.range) ? Number(at.range[0]) : null;
    if (offset !== null) lines.set(JSON.stringify(path), counter.linePos(offset).line);
    visit(node, path);
  }

  visit(document.contents, []);
  const lineOf = (path: Path): number => lines.get(JSON.stringify(path)) ?? (path.length === 0 ? 1 : lineOf(path.slice(0, -1)));
  return { lineOf, mistakes };
}
