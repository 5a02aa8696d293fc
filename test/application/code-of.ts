import { isFailure, type FailureCode } from '../../src/domain/failure.ts';

/** Returns the code of the failure, or null if the call did not fail. */
export async function codeOf(promise: Promise<unknown>): Promise<FailureCode | null> {
  try {
    await promise;
    return null;
  } catch (error) {
    if (!isFailure(error)) throw error;
    return error.code;
  }
}
