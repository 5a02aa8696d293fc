import { isFailure, isFailureOf } from '../../domain/failure.ts';
import { AgentRefusal } from '../../ports/agent-protocol.ts';

/** A step of a start took longer than it may. */
export class StepTooLate extends Error {
  constructor(limitMs: number, cause: unknown) {
    super(`it was not done within ${limitMs / 1000} s`, { cause });
  }
}

/** Why something did not come about, in words for its owner; null where only the log may tell. */
export function wordsOf(error: unknown): string | null {
  if (error instanceof AgentRefusal) return `its agent could not be started: ${error.message}`;
  return isFailure(error) || error instanceof StepTooLate ? error.message : null;
}

/** Is it the store that failed? Nothing can be written down then; it is tried again at the next sweep. */
export function isStoreFailure(error: unknown): boolean {
  return isFailureOf(error, 'store_unavailable');
}
