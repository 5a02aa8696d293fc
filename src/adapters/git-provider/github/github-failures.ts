import type { z } from 'zod';
import type { Failure } from '../../../domain/failure.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

/** The name that the provider is configured by. */
export const providerName = 'github';

export const failures = providerFailures(providerName);
export const { failed, notFound, unauthorized, malformed, tooLarge, down } = failures;

/** The reasons of `provider_failed`. */
export const reasons = {
  anotherOrigin: 'it leads to another origin, which is not followed',
  blocked: 'the repository is blocked for legal reasons',
  brokenHistory: 'it breaks off in the middle of a history',
  directoryTooLarge: 'a directory is too large to find another in it',
  lostCommit: 'a commit is gone that it has just named',
  missingHead: 'it does not tell the head of a repository that it knows',
  missingHistory: 'it left out a history that it was asked for',
  notModified: 'it says that nothing has changed, which was not the question',
  pageWithoutNumber: 'its answer has a link to a page that has no number',
  queryRefused: 'it refused a query',
  queryTooHeavy: 'a query took it too long',
  undatedFile: 'it knows no history of a file that it lists',
  unexpectedStatus: (status: number) => ({ code: 'unexpected_status', status }) as const,
  serverError: (status: number) => ({ code: 'server_error', status }) as const,
};

const heavy = new WeakSet<Error>();

/** The host gave up on a query. A smaller one may do. */
export function tooHeavy(cause?: Error): Failure<'provider_failed'> {
  const failure = down(reasons.queryTooHeavy, cause);
  heavy.add(failure);
  return failure;
}

export function isTooHeavy(error: unknown): boolean {
  return error instanceof Error && heavy.has(error);
}

/** Throws `provider_failed` if the value is not of the documented form. */
export function parseValue<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const { success, data } = schema.safeParse(value);
  if (!success) throw malformed(what);
  return data;
}

/** As `parseValue`, of a text in JSON. */
export function parseJson<T>(schema: z.ZodType<T>, text: string, what: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw malformed(what);
  }
  return parseValue(schema, value, what);
}
