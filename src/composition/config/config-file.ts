import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Document, isMap, isScalar, isSeq, LineCounter, parseDocument, type YAMLError } from 'yaml';
import { errorCode } from '../../adapters/shared/system-errors.ts';
import type { ConfigProblem } from './config-error.ts';

type Path = readonly PropertyKey[];

export interface ConfigFile {
  readonly keys: Readonly<Record<string, unknown>>;
  /** The problems that make the file unusable. */
  readonly problems: readonly ConfigProblem[];
  /** Keys that are repeated in one mapping, with the line of the second one. */
  readonly duplicates: readonly { readonly key: string; readonly line: number }[];
  readonly path: string;
  /** Returns the line of a field, or of its parent if the field is missing. The first line is 1. */
  lineOf(path: Path): number;
}

export const configPathForm = 'the path of a YAML or JSON file, for example /etc/skep.yaml';
const contentForm = 'a file in YAML or JSON with a mapping at the top level, for example the single line: port: 3000';

const isDuplicate = ({ code }: YAMLError): boolean => code === 'DUPLICATE_KEY';

/** Reads the file. Returns no keys if the path or the file is empty. */
export function readConfigFile(path = ''): ConfigFile {
  const empty = { keys: {}, problems: [], duplicates: [], path, lineOf: () => 1 };
  const name = 'SKEP_CONFIG';
  const unusable = (problem: string, line = 1): ConfigProblem => ({ name, problem, form: contentForm, place: `${path}:${line}` });
  if (path === '') return empty;
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const problem = `names the file ${resolve(path)}, which ${reasonOf(error)}`;
    return { ...empty, problems: [{ name, problem, form: configPathForm }] };
  }
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false, logLevel: 'error' });
  const lineAt = (offset: number): number => lineCounter.linePos(offset).line;
  const broken = [...document.errors, ...document.warnings].filter((error) => !isDuplicate(error));
  if (broken.length > 0) return { ...empty, problems: broken.map((error) => unusable(syntaxProblem(error), lineAt(error.pos[0]))) };
  const duplicates = document.errors.filter(isDuplicate).map(({ pos: [offset] }) => ({
    key: /^[^\s:]+/.exec(text.slice(offset))?.[0] ?? '', line: lineAt(offset),
  }));
  const keys = contentOf(document);
  if (typeof keys === 'string') return { ...empty, problems: [unusable(keys)] };
  return { ...empty, keys, duplicates, lineOf: (field) => lineAt(offsetOf(document, field)) };
}

/** Returns the library's own message, unless it is meant for programmers. */
function syntaxProblem({ code, message }: YAMLError): string {
  if (code === 'MULTIPLE_DOCS') return 'has several documents; keep only one';
  return code === 'TAG_RESOLVE_FAILED' ? `has a tag that Skep does not know (${message})` : `is not valid YAML: ${message}`;
}

const reasons: Readonly<Record<string, string>> = { ENOENT: 'does not exist', EACCES: 'this user may not read', EISDIR: 'is a folder' };

function reasonOf(error: unknown): string {
  const code = errorCode(error) ?? 'unknown error';
  return `${reasons[code] ?? "can't be read"} (${code})`;
}

/** Returns the mapping at the top, or a text with the reason why there is none. */
function contentOf(document: Document): Readonly<Record<string, unknown>> | string {
  try {
    const content: unknown = document.toJS() ?? {};
    return typeof content === 'object' && content !== null && !Array.isArray(content) ? { ...content } : 'has no mapping at the top level';
  } catch (error) {
    return `is not valid YAML: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function offsetOf(document: Document, path: Path): number {
  if (path.length === 0) return 0;
  const [parentPath, last] = [path.slice(0, -1), path.at(-1)];
  const parent: unknown = document.getIn(parentPath, true);
  let node: unknown;
  if (isMap(parent)) node = parent.items.findLast(({ key }) => (isScalar(key) ? String(key.value) : key) === last)?.key;
  if (isSeq(parent)) node = parent.items[Number(last)];
  const range: unknown = typeof node === 'object' && node !== null && 'range' in node ? node.range : null;
  return Array.isArray(range) ? Number(range[0]) : offsetOf(document, parentPath);
}
