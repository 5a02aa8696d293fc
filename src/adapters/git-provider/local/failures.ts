import type { Failure } from '../../../domain/failure.ts';
import type { GitExit } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

/** The name that the provider is configured by. */
export const providerName = 'local';

export const { failed, timedOut, notFound } = providerFailures(providerName);

export function tooLarge(limit: string): Failure<'provider_failed'> {
  return failed({ code: 'too_large', limit });
}

const corrupt = /missing|corrupt|unable to read|could not read|failed to|bad (?:object|tree|revision)|not a tree|inflate/iu;

/** The failure that an exit of git means; null if it succeeded. */
export function exitFailure({ code, signal, stderr }: GitExit): Error | null {
  if (code === 0) return null;
  const cause = new Error(`git ended with ${signal ?? `exit code ${code}`}: ${stderr}`);
  if (signal !== null) return failed('git was killed; the machine may be short of memory', cause);
  if (/out of memory|memory limit/iu.test(stderr)) return failed('the repository has an object that is too large to read', cause);
  if (corrupt.test(stderr)) return failed('objects of the repository are missing or corrupt', cause);
  return failed('git could not read the repository', cause);
}

export function hasCode(error: unknown, codes: ReadonlySet<string>): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.has(error.code);
}
