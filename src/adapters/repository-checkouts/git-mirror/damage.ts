import type { Reason } from '../../../domain/reason.ts';
import type { GitExit } from '../../shared/git-process.ts';

/** What git could not do because of what the mirror is like: it is made anew, once. */
export class Damage extends Error {}

type Failed = (reason: Reason | string, cause?: unknown) => Error;

/** The failure where a git ended badly because of this machine; null where it was something else. The words are without a secret. */
export function troubleOfMachine({ signal }: GitExit, words: string, failed: Failed): Error | null {
  const cause = new Error(words);
  if (signal !== null) return failed('git was killed; the machine may be short of memory', cause);
  if (/No space left|quota exceeded/iu.test(words)) return failed({ code: 'disk_full' }, cause);
  if (/temporarily unavailable|cannot fork|unable to create (?:async )?thread|Too many open files/iu.test(words)) {
    return failed('the machine is short of processes or files', cause);
  }
  if (/out of memory|memory limit|attempting to allocate|Cannot allocate/iu.test(words)) {
    return failed('the machine is short of memory, or the repository has an object that is too large', cause);
  }
  return null;
}
