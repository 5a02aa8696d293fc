import { isFailure, type FailureCode } from '../../src/domain/failure.ts';

/** The code that the call failed with; null when it did not fail. */
export async function codeOf(promise: Promise<unknown>): Promise<FailureCode | null> {
  try {
    await promise;
    return null;
  } catch (error) {
    if (!isFailure(error)) throw error;
    return error.code;
  }
}
