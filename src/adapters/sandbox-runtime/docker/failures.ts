import { Failure, isFailure } from '../../../domain/failure.ts';
import { statusOf } from './engine-errors.ts';

/** Runs the task, and gives what the engine answered otherwise the form that callers know. */
export async function withFailures<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    const status = statusOf(error);
    if (isFailure(error) || status === null) throw error;
    throw new Failure('runtime_unavailable', { runtime: 'docker', reason: `its engine answered ${status}; its log tells more`, retryAfterSeconds: 5 }, { cause: error });
  }
}
