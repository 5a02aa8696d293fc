import { distance } from 'fastest-levenshtein';
import { z } from 'zod';
import { fileSchema } from './file-schema.ts';
import { settings, settingsSchema } from './settings.ts';

type Path = readonly PropertyKey[];

/** A mistake in the file. */
export interface Mistake {
  readonly path: Path;
  /** The rest of a sentence that begins with the field. */
  readonly problem: string;
  /** What is expected. Default: what the field's schema says. */
  readonly form?: string;
}

/** Everything that the file may hold. The secrets among the settings are refused there. */
export const configSchema = z.strictObject({ ...settingsSchema.shape, ...fileSchema.shape });

/** A field of the file, as JSON Schema describes it. `secret` is a member of Skep's own. */
type Field = z.core.JSONSchema.BaseSchema;

let fields: Field | undefined;

/** Returns the fields from the top of the file down to the one at the path, as far as the schema knows them. */
function fieldsTo(path: Path): readonly Field[] {
  // Only a mistake needs them, so that a right configuration does not wait for them.
  fields ??= z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' });
  const found = [fields];
  for (const key of path) {
    const { properties = {}, items, additionalProperties } = found.at(-1) ?? {};
    const below = Object.hasOwn(properties, key) ? properties[String(key)] : (items ?? additionalProperties);
    if (typeof below !== 'object' || Array.isArray(below)) break;
    found.push(below);
  }
  return found;
}

/** Returns what the field at the path takes, or what its parent takes if the field is not known. */
export function formAt(path: Path): string {
  return fieldsTo(path).findLast(({ description }) => description !== undefined)?.description ?? '';
}

/** Returns the names of the fields of the mapping at the path. Empty if its fields are not fixed. */
function fieldsAt(path: Path): readonly string[] {
  const found = fieldsTo(path);
  return found.length > path.length ? Object.keys(found.at(-1)?.properties ?? {}) : [];
}

/** Returns the paths of all fields that are no settings: `specs[].ready.within`. */
export function allFields(path: Path = [], prefix = ''): readonly string[] {
  if (fieldsTo(path).at(-1)?.items !== undefined) return allFields([...path, 0], `${prefix}[]`);
  const names = path.length === 0 ? Object.keys(fileSchema.shape) : fieldsAt(path);
  return names.flatMap((name) => {
    const full = prefix === '' ? name : `${prefix}.${name}`;
    return [full, ...allFields([...path, name], full)];
  });
}

/** Returns the mistakes of the fields that do not match the schema. zod's own messages are for programmers, so they are left empty. */
export function mistakesIn(value: Readonly<Record<string, unknown>>): readonly Mistake[] {
  const { error } = configSchema.safeParse(value, { error: () => '', reportInput: true });
  return ((error?.issues ?? []) as readonly Issue[]).flatMap((issue) => {
    const { keys } = issue;
    const [key = ''] = issue.path;
    // A setting is one value, whatever it consists of.
    const isSetting = Object.hasOwn(settingsSchema.shape, key);
    const path = isSetting ? [key] : issue.path;
    if (keys !== undefined) return keys.map((key) => unknownField(path, key));
    const isSecret = fieldsTo(path).some((field) => field['secret'] === true);
    const problem = problemOf(issue, isSetting ? value[String(key)] : issue.input, isSecret);
    // If a key is wrong, the form of its mapping is what is expected.
    return issue.code === 'invalid_key' ? { path, problem, form: formAt(path.slice(0, -1)) } : { path, problem };
  });
}

/** Returns the mistake of an unknown field. */
function unknownField(parent: Path, key: string): Mistake {
  const path = [...parent, key];
  // What only Docker understands was a part of `isolation`.
  const isMoved = parent.at(-1) === 'isolation' && fieldsAt([...parent.slice(0, -1), 'docker']).includes(key);
  if (isMoved) return { path, problem: `has moved; write it as docker.${key}` };
  const known = fieldsAt(parent).filter((name) => parent.length > 0 || !settings.some((each) => each.isSecret && each.key === name));
  const meant = nearest(key, known) ?? elsewhere(parent, key);
  return {
    path,
    problem: `is not a field that Skep knows${meant === null ? '' : `; did you mean ${meant}?`}`,
    form: known.length === 1 ? known.join() : `one of ${known.toSorted().join(', ')}`,
  };
}

/** Returns the path of the field if exactly one other mapping has it, relative to the same spec. */
function elsewhere(parent: Path, key: string): string | null {
  const [only, second] = allFields().filter((path) => folded(path.split('.').at(-1) ?? '') === folded(key));
  if (only === undefined || second !== undefined) return null;
  return parent[0] === 'specs' ? only.replace(/^specs\[\]\./, '') : only;
}

/** The members of zod's issues that are used. */
interface Issue {
  readonly code?: string;
  readonly path: Path;
  readonly message: string;
  readonly input?: unknown;
  /** The expected type, for a value of another one. */
  readonly expected?: string;
  /** The names of unknown fields. */
  readonly keys?: readonly string[];
  /** The issues of a record's key. */
  readonly issues?: readonly Issue[];
  /** The issues of each alternative of a union. */
  readonly errors?: readonly (readonly Issue[])[];
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

/** Returns what is wrong with the value as the rest of a sentence: `is "60", which is not a duration`. */
function problemOf(issue: Issue, value: unknown, secret: boolean): string {
  if (value === undefined) return 'is missing';
  if (value === null) return 'has no value';
  if (issue.code === 'invalid_key') return `has a name that ${issue.issues?.[0]?.message ?? 'is not allowed'}`;
  const { code, message, expected = '' } = nearestAlternative(issue);
  const what = found(value, secret);
  const isOtherType = code === 'invalid_type' && message === '';
  if (isOtherType) return `is ${what} instead of ${kinds[expected] ?? 'what it takes'}${quotesHint(value, expected)}`;
  if (message === '') return `is ${what}`;
  return what === 'a text' ? message : `is ${what}, which ${message}`;
}

/** Returns the issue of a union's last alternative, which is the general one. Those before it are single words. */
function nearestAlternative(issue: Issue): Issue {
  const last = issue.code === 'invalid_union' && issue.message === '' ? issue.errors?.at(-1)?.[0] : undefined;
  return last === undefined ? issue : nearestAlternative(last);
}

/** Returns a hint for the most frequent reason of a wrong type in YAML. */
function quotesHint(value: unknown, expected: string): string {
  if (expected === 'string' && (typeof value === 'number' || typeof value === 'boolean')) return '; put it in quotes';
  const bare: Readonly<Record<string, RegExp>> = { boolean: /^(true|false)$/i, number: /^\d+(\.\d+)?$/, int: /^\d+$/ };
  return typeof value === 'string' && bare[expected]?.test(value) === true ? '; leave out the quotes' : '';
}

const shownLength = 60;

/** Returns a description of the value. Of what may be a secret it says only the type. */
function found(value: unknown, secret: boolean): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return secret ? 'a number' : String(value);
  if (typeof value !== 'string') return 'a mapping';
  // A URL may have a password in it.
  if (secret || /\/\/[^/]*@/.test(value)) return 'a text';
  return JSON.stringify(value.length > shownLength ? `${value.slice(0, shownLength)}...` : value);
}

/** Returns the name of a field: `limits.running`, or with the id or the number of its spec: `spec node, ready.within`. */
export function fieldName(path: Path, specs: unknown): string {
  const [top, index, ...rest] = path;
  if (top !== 'specs' || typeof index !== 'number') return pathText(path);
  const spec = `spec ${idAt(specs, index) ?? `no. ${index + 1}`}`;
  return rest.length === 0 ? spec : `${spec}, ${pathText(rest)}`;
}

function idAt(specs: unknown, index: number): string | null {
  const spec: unknown = Array.isArray(specs) ? specs[index] : null;
  const id: unknown = typeof spec === 'object' && spec !== null && 'id' in spec ? spec.id : null;
  return typeof id === 'string' && id !== '' ? plain(id) : null;
}

function pathText(path: Path): string {
  return path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${plain(String(part))}`)).join('').replace(/^\./, '');
}

/** Returns the name in quotes if it could be misread. */
function plain(name: string): string {
  return /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
}

/**
 * Returns the known name that was most likely meant: one that differs in few letters, or in case, dashes and underscores only, or
 * the shortest one that the name abbreviates (`dir` for `working_dir`, `cmd` for `command`). Null if none is near.
 */
export function nearest(name: string, known: readonly string[]): string | null {
  const meant = folded(name);
  const letters = meant.length < 4 ? 1 : Math.max(2, Math.floor(meant.length / 3));
  const [first] = known
    .map((candidate) => ({ candidate, distance: distance(meant, folded(candidate)) }))
    .filter((each) => each.distance <= letters)
    .toSorted((a, b) => a.distance - b.distance);
  if (first !== undefined) return first.candidate;
  const full = known.filter((candidate) => abbreviates(name.toLowerCase(), candidate)).toSorted((a, b) => a.length - b.length);
  return full[0] === undefined || full[0].length === full[1]?.length ? null : full[0];
}

/** Returns the name without the differences of spelling. */
const folded = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, '');

/** Whether the name is a word of the candidate, or its first letter and some others in order. */
function abbreviates(name: string, candidate: string): boolean {
  if (name.length < 3 || !/^\w+$/.test(name)) return false;
  return candidate.split('_').includes(name) || new RegExp(`^${name.split('').join('.*')}`).test(candidate);
}
