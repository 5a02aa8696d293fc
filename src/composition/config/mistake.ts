import type { z } from 'zod';
import { allFields, fieldsAt, formAt } from './form.ts';
import { issuesOf, problemOf } from './issue.ts';
import { folded, nearest } from './nearest.ts';

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
  const moved = movedTo(schema, parent, key);
  if (moved !== null) return { path: [...parent, key], problem: `has moved; write it as ${moved}` };
  const meant = nearest(key, known) ?? elsewhere(schema, parent, key);
  return {
    path: [...parent, key],
    problem: `is not a field that Skep knows${meant === null ? '' : `; did you mean ${meant}?`}`,
    form: known.length === 1 ? known.join() : `one of ${known.toSorted().join(', ')}`,
  };
}

/** The new place of a field that was one of a spec's `isolation`, and is a setting of Docker. Null if it never was. */
function movedTo(schema: z.ZodType, parent: readonly PropertyKey[], key: string): string | null {
  const spec = parent.slice(0, -1);
  const isMoved = parent.at(-1) === 'isolation' && fieldsAt(schema, [...spec, 'docker']).includes(key);
  return isMoved ? `docker.${key}` : null;
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
