import { distance } from 'fastest-levenshtein';
import { z } from 'zod';
import type { ConfigProblem } from './config-error.ts';
import { settings, settingsSchema } from './settings.ts';

type Path = readonly PropertyKey[];

/** A problem at a path of a schema. It becomes a {@link ConfigProblem} when the field's name and its line in the file are known. */
export interface FieldProblem {
  readonly path: Path;
  /** The rest of a sentence that begins with the field. */
  readonly problem: string;
  /** The accepted values. Default: the description in the field's schema. */
  readonly form?: string;
}

interface Field {
  /** The accepted values, or those of the nearest field above that describes them. */
  readonly form: string;
  /** Whether its value, or that of a field above, can be a secret. */
  readonly isSecret: boolean;
  /** The unit of a number: `duration` or `size`. */
  readonly unit: unknown;
  /** The fields of a mapping. */
  readonly fields: ReadonlyMap<string, Field>;
  /** Each item of a list, or each value of a mapping whose names are free. */
  readonly element: Field | null;
}

/** A field in JSON Schema. `secret` and `unit` are Skep's own extensions. */
type JsonSchema = z.core.JSONSchema.BaseSchema;
type Issue = z.core.$ZodIssue;

/** A union has the fields of all its alternatives. */
function toField(schema: JsonSchema, above = { form: '', isSecret: false }): Field {
  const alternatives = alternativesOf(schema);
  const form = alternatives.find(({ description }) => description !== undefined)?.description ?? above.form;
  const own = { form, isSecret: above.isSecret || schema['secret'] === true };
  const named = alternatives.flatMap(({ properties = {} }) => Object.entries(properties));
  const element = alternatives.flatMap(({ items, additionalProperties }) => items ?? additionalProperties ?? []).at(-1);
  return {
    ...own,
    unit: schema['unit'],
    fields: new Map(named.flatMap(([name, below]) => (isSchema(below) ? [[name, toField(below, own)]] : []))),
    element: isSchema(element) ? toField(element, own) : null,
  };
}

/** Returns the schema, and its alternatives if it is a union. */
function alternativesOf(schema: JsonSchema): readonly JsonSchema[] {
  return [schema, ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap(alternativesOf)];
}

/** False for a schema that is only `true` or `false`. */
const isSchema = (schema: unknown): schema is JsonSchema => typeof schema === 'object';

const converted = new WeakMap<z.ZodType, Field>();

/** Returns the field at the path, or the last one on the way to it that is known. */
export function fieldAt(schema: z.ZodType, path: Path): Field {
  // Converted only for a problem, so a correct configuration loads faster.
  let field = converted.get(schema) ?? toField(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));
  converted.set(schema, field);
  for (const key of path) {
    const below = field.fields.get(String(key)) ?? field.element;
    if (below === null) break;
    field = below;
  }
  return field;
}

const secretSettings = new Set(settings.filter(({ isSecret }) => isSecret).map(({ key }) => key));
const isSetting = (key: PropertyKey | undefined): boolean => key !== undefined && Object.hasOwn(settingsSchema.shape, key);

/** Returns the paths of all fields that are not settings: `specs[].ready.within`. */
export function allFields(schema: z.ZodType): readonly string[] {
  const names = [...fieldAt(schema, []).fields].filter(([name]) => !isSetting(name));
  return names.flatMap(([name, field]) => [name, ...pathsBelow(field, name)]);
}

function pathsBelow({ fields, element }: Field, prefix: string): readonly string[] {
  const ofElement = element === null ? [] : pathsBelow(element, `${prefix}[]`);
  return [...ofElement, ...[...fields].flatMap(([name, field]) => [`${prefix}.${name}`, ...pathsBelow(field, `${prefix}.${name}`)])];
}

/** Returns the problems that the schema finds. zod's own messages are for programmers, so they are left empty. */
export function problemsIn(schema: z.ZodType, value: object): readonly FieldProblem[] {
  const { error } = schema.safeParse(value, { error: () => '', reportInput: true });
  return (error?.issues ?? []).flatMap(ofAlternative).flatMap((issue) => {
    const [key] = issue.path;
    const isOfSetting = key !== undefined && isSetting(key);
    // A setting is reported as one field, even if it is a list.
    const path = isOfSetting ? [key] : issue.path;
    const isEntry = path.length < issue.path.length;
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownField(schema, path, key));
    const { isSecret } = fieldAt(schema, path);
    // The schema of a setting may have changed its value before it found the problem.
    const written = isOfSetting && !isEntry ? Reflect.get(value, String(key)) : issue.input;
    const problem = `${isEntry ? 'has an entry that ' : ''}${problemOf(issue, written, isSecret)}`;
    // For a wrong key, the form of its mapping is reported.
    return issue.code === 'invalid_key' ? { path, problem, form: fieldAt(schema, path.slice(0, -1)).form } : { path, problem };
  });
}

/** Returns the issues of a union's last alternative, the general one. Earlier alternatives are single words or adapters. */
function ofAlternative(issue: Issue): readonly Issue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const { discriminator, input } = issue;
  if (discriminator !== undefined) return [{ ...issue, input: Reflect.get(Object(input), discriminator) }];
  const last = issue.message === '' ? issue.errors.at(-1) : undefined;
  if (last === undefined) return [issue];
  return last.flatMap((below) => ofAlternative({ ...below, path: [...issue.path, ...below.path] }));
}

function unknownField(schema: z.ZodType, parent: Path, key: string): FieldProblem {
  const path = [...parent, key];
  const all = [...fieldAt(schema, parent).fields.keys()].filter((name) => parent.length > 0 || !secretSettings.has(name));
  const known = all.filter((name) => name !== key);
  const meant = nearest(key, known) ?? findElsewhere(schema, parent, key);
  const hint = all.includes(key) ? ' of this kind, but of another one' : meant === null ? '' : `; did you mean ${meant}?`;
  return {
    path,
    problem: `is not a known field${hint}`,
    form: known.length === 1 ? known.join() : `one of ${known.toSorted().join(', ')}`,
  };
}

/** Returns the path of the field, relative to the same spec, if exactly one other mapping has it. */
function findElsewhere(schema: z.ZodType, parent: Path, key: string): string | null {
  const [only, second] = allFields(schema).filter((path) => normalized(path.split('.').at(-1) ?? '') === normalized(key));
  if (only === undefined || second !== undefined) return null;
  return parent[0] === 'specs' ? only.replace(/^specs\[\]\./, '') : only;
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

/** Returns the problem as the rest of a sentence: `is "60", which is not a duration`. */
function problemOf(issue: Issue, value: unknown, secret: boolean): string {
  if (value === undefined) return 'is missing';
  if (value === null) return 'has no value';
  if (issue.code === 'invalid_key') return `has a name that ${issue.issues[0]?.message ?? 'is not allowed'}`;
  const what = found(value, secret);
  if (issue.message !== '') return what === 'a text' ? issue.message : `is ${what}, which ${issue.message}`;
  if (issue.code !== 'invalid_type') return `is ${what}`;
  return `is ${what} instead of ${kinds[issue.expected] ?? 'an allowed value'}${quotesHint(value, issue.expected)}`;
}

/** Returns a hint for the most common cause of a wrong type in YAML. */
function quotesHint(value: unknown, expected: string): string {
  if (expected === 'string' && (typeof value === 'number' || typeof value === 'boolean')) return '; put it in quotes';
  const bare: Readonly<Record<string, RegExp>> = { boolean: /^(true|false)$/i, number: /^\d+(\.\d+)?$/, int: /^\d+$/ };
  return typeof value === 'string' && bare[expected]?.test(value) === true ? '; leave out the quotes' : '';
}

const shownLength = 60;

/** Returns a description of the value. If it may be a secret, names only its type. */
function found(value: unknown, secret: boolean): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return secret ? 'a number' : String(value);
  if (typeof value !== 'string') return 'a mapping';
  // A URL can contain a password.
  if (secret || /\/\/[^/]*@/.test(value)) return 'a text';
  return JSON.stringify(value.length > shownLength ? `${value.slice(0, shownLength)}...` : value);
}

/** Adds the field's name and its accepted values. `specs` is the unparsed value of the field `specs`. */
export function toConfigProblem(
  schema: z.ZodType, { path, problem, form = fieldAt(schema, path).form }: FieldProblem, specs: unknown,
): ConfigProblem {
  return { name: fieldName(path, specs), problem, form };
}

/** Returns the name of a field: `limits.running`, or with the id or the number of its spec: `spec node, ready.within`. */
function fieldName(path: Path, specs: unknown): string {
  const [top, index, ...rest] = path;
  if (top !== 'specs' || typeof index !== 'number') return pathText(path);
  const spec = `spec ${idAt(specs, index) ?? `no. ${index + 1}`}`;
  return rest.length === 0 ? spec : `${spec}, ${pathText(rest)}`;
}

function idAt(specs: unknown, index: number): string | null {
  const spec: unknown = Array.isArray(specs) ? specs[index] : null;
  const id: unknown = typeof spec === 'object' && spec !== null && 'id' in spec ? spec.id : null;
  return typeof id === 'string' && id !== '' ? quotedIfNeeded(id) : null;
}

function pathText(path: Path): string {
  return path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${quotedIfNeeded(String(part))}`)).join('').replace(/^\./, '');
}

function quotedIfNeeded(name: string): string {
  return /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
}

/** Returns the known name with few different letters, or the shortest that has `name` as a word (`env` for `initial_env`); or null. */
export function nearest(name: string, known: readonly string[]): string | null {
  const meant = normalized(name);
  const letters = meant.length < 4 ? 1 : Math.max(2, Math.floor(meant.length / 3));
  const [first] = known
    .map((candidate) => ({ candidate, distance: distance(meant, normalized(candidate)) }))
    .filter((each) => each.distance <= letters)
    .toSorted((a, b) => a.distance - b.distance);
  if (first !== undefined) return first.candidate;
  const longer = known.filter((candidate) => candidate.split('_').includes(name.toLowerCase()));
  return longer.toSorted((a, b) => a.length - b.length)[0] ?? null;
}

const normalized = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, '');
