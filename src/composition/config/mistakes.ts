import type { z } from 'zod';
import { allFields, fieldsAt, formAt } from './form.ts';

/** Something wrong in the file. */
export interface Mistake {
  readonly path: readonly PropertyKey[];
  /** The rest of a sentence that begins with the field. */
  readonly problem: string;
  /** What is expected, where it is not what the field's own form says. */
  readonly form?: string;
}

/** Every field of the value that is not as the schema wants it, each once. */
export function mistakesIn(schema: z.ZodType, value: unknown): readonly Mistake[] {
  const mistakes = new Map<string, Mistake>();
  const add = (mistake: Mistake): void => {
    const field = JSON.stringify(mistake.path);
    if (!mistakes.has(field)) mistakes.set(field, mistake);
  };
  for (const issue of issuesOf(schema, value)) {
    const { path, keys } = issue;
    const { secret } = formAt(schema, path);
    for (const key of keys ?? []) add(unknownField(schema, path, key));
    // A key that is wrong is not what its value takes.
    const form = issue.code === 'invalid_key' ? { form: formAt(schema, path.slice(0, -1)).takes } : {};
    if (keys === undefined) add({ path, problem: problemOf(issue, valueAt(value, path), secret), ...form });
  }
  return [...mistakes.values()];
}

/** A field that is not known; `besides` are names that are, though not of the schema. */
export function unknownField(schema: z.ZodType, parent: readonly PropertyKey[], key: string, besides: readonly string[] = []): Mistake {
  const known = [...fieldsAt(schema, parent), ...besides];
  const meant = nearest(key, known) ?? elsewhere(schema, parent, key);
  return {
    path: [...parent, key],
    problem: `is not a field that Skep knows${meant === null ? '' : `; did you mean ${meant}?`}`,
    form: known.length === 1 ? known.join() : `one of ${known.toSorted().join(', ')}`,
  };
}

/** The field of that name in another place, seen from the same spec; null where there is none, or several. */
function elsewhere(schema: z.ZodType, parent: readonly PropertyKey[], key: string): string | null {
  const having = allFields(schema).filter((path) => folded(path.split('.').at(-1) ?? '') === folded(key));
  const [only] = having.length === 1 ? having : [];
  if (only === undefined) return null;
  return parent[0] === 'specs' && only.startsWith('specs[].') ? only.slice('specs[].'.length) : only;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((part, key) => (typeof part === 'object' && part !== null && Object.hasOwn(part, key) ? Reflect.get(part, key) : undefined), value);
}

/** What of a mistake that zod found is of use to a person: not zod's own words, which are for programmers. */
interface Issue {
  readonly code?: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  /** Of a value of the wrong kind. */
  readonly expected?: string;
  /** Of fields that are not known. */
  readonly keys?: readonly string[];
  /** Of a key of a record that is wrong. */
  readonly issues?: readonly Issue[];
  /** Of each alternative that was not taken. */
  readonly errors?: readonly (readonly Issue[])[];
}

/** The issues with the words of Skep's own schemas; what zod would say by itself is left empty. */
export function issuesOf(schema: z.ZodType, value: unknown): readonly Issue[] {
  const { error } = schema.safeParse(value, { error: () => '' });
  return error?.issues ?? [];
}

const kinds: Readonly<Record<string, string>> = {
  object: 'a mapping',
  record: 'a mapping',
  array: 'a list',
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
};

/** What is wrong with the value that was found, as the rest of a sentence: `is "60", which is not a duration`. */
export function problemOf(issue: Issue, value: unknown, secret: boolean): string {
  if (value === undefined) return 'is missing';
  if (value === null) return 'has no value';
  if (issue.code === 'invalid_key') return `has a name that ${issue.issues?.[0]?.message ?? 'is not allowed'}`;
  const { code, message, expected = '' } = nearestAlternative(issue);
  const what = found(value, secret);
  if (code === 'invalid_type' && message === '') return `is ${what} instead of ${kinds[expected] ?? 'what it takes'}${quotes(value, expected)}`;
  if (message === '') return `is ${what}`;
  return what === 'a text' ? message : `is ${what}, which ${message}`;
}

/** The last alternative is the form itself; those before it are single words. */
function nearestAlternative(issue: Issue): Issue {
  const last = issue.code === 'invalid_union' && issue.message === '' ? issue.errors?.at(-1)?.[0] : undefined;
  return last === undefined ? issue : nearestAlternative(last);
}

/** The most frequent reason for a wrong kind in YAML. */
function quotes(value: unknown, expected: string): string {
  if (expected === 'string' && (typeof value === 'number' || typeof value === 'boolean')) return '; put it in quotes';
  const bare = typeof value === 'string' && (expected === 'boolean' ? /^(true|false)$/i.test(value) : /^\d+(\.\d+)?$/.test(value) && ['number', 'int'].includes(expected));
  return bare ? '; leave out the quotes' : '';
}

const shownLength = 60;

/** What was found, in words. Of what may be a secret only its kind is told. */
function found(value: unknown, secret: boolean): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return secret ? 'a number' : String(value);
  if (typeof value !== 'string') return 'a mapping';
  // A URL may have a password in it.
  if (secret || /\/\/[^/]*@/.test(value)) return 'a text';
  return JSON.stringify(value.length > shownLength ? `${value.slice(0, shownLength)}...` : value);
}

type Path = readonly PropertyKey[];

/** The field as a person knows it: `limits.running`; of a spec by the spec's id, or by its place: `spec node, ready.within`. */
export function fieldName(path: Path, specs: unknown): string {
  const [top, index, ...rest] = path;
  if (top !== 'specs' || typeof index !== 'number') return pathText(path);
  const spec = `spec ${idAt(specs, index) ?? `no. ${index + 1}`}`;
  return rest.length === 0 ? spec : `${spec}, ${pathText(rest)}`;
}

function idAt(specs: unknown, index: number): string | null {
  const spec: unknown = Array.isArray(specs) ? specs[index] : null;
  const id: unknown = typeof spec === 'object' && spec !== null && 'id' in spec ? spec.id : null;
  if (typeof id !== 'string' || id === '') return null;
  return plain(id);
}

function pathText(path: Path): string {
  return path.map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${plain(String(part))}`)).join('');
}

/** In quotes where it could be taken for something else. */
function plain(name: string): string {
  return /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
}

/**
 * The known name that was most likely meant: one that differs in few letters, or in case, dashes and underscores only, or
 * the shortest that the name abbreviates (`dir` for `working_dir`, `cmd` for `command`). Null where none is near, or several are.
 */
export function nearest(name: string, known: readonly string[]): string | null {
  const meant = folded(name);
  const ranked = known
    .map((candidate) => ({ candidate, distance: distance(meant, folded(candidate)) }))
    .toSorted((a, b) => a.distance - b.distance);
  const [first] = ranked;
  if (first !== undefined && first.distance <= Math.max(1, Math.floor(meant.length / 3))) return first.candidate;
  const [shortest, next] = known.filter((candidate) => abbreviates(name.toLowerCase(), candidate.toLowerCase())).toSorted((a, b) => a.length - b.length);
  return shortest === undefined || shortest.length === next?.length ? null : shortest;
}

/** The name without what people write differently. */
const folded = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, '');

function abbreviates(name: string, candidate: string): boolean {
  if (name.length < 3) return false;
  let found = 0;
  for (const letter of candidate) if (letter === name[found]) found += 1;
  return candidate.split('_').includes(name) || (found === name.length && candidate[0] === name[0]);
}

/** Letters to add, drop, change, or swap with their neighbour, to get from one word to the other. */
function distance(a: string, b: string): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const changed = (last[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const swapped = row > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1] ? (before[column - 2] ?? 0) + 1 : Infinity;
      current.push(Math.min((last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, changed, swapped));
    }
    [before, last] = [last, current];
  }
  return last[b.length] ?? 0;
}
