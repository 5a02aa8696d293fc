import type { GitExit } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

export const providerName = 'local';

export const failures = providerFailures(providerName);
export const { failed, timedOut, notFound, tooLarge } = failures;

const corrupt = /missing|corrupt|unable to read|could not read|failed to|bad (?:object|tree|revision)|not a tree|inflate/iu;

/** Throws the failure for git's exit, unless git succeeded. */
export function requireSuccess({ code, signal, stderr }: GitExit): void {
  if (code === 0) return;
  const cause = new Error(`git ended with ${signal ?? `exit code ${code}`}: ${stderr}`);
  if (signal !== null) throw failed('git was killed; the machine may be short of memory', cause);
  if (/out of memory|memory limit/iu.test(stderr)) throw failed('the repository has an object that is too large to read', cause);
  if (corrupt.test(stderr)) throw failed('objects of the repository are missing or corrupt', cause);
  throw failed('git could not read the repository', cause);
}
