import type { z } from 'zod';
import { found } from './found.ts';

/** What of a mistake that zod found is of use to a person: not zod's own words, which are for programmers. */
export interface Issue {
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
