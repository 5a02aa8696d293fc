import { explained, type Reason } from '../../../domain/reason.ts';
import { Failure, isFailure } from '../../../domain/failure.ts';
import { errorCode } from '../../shared/system-errors.ts';

export function unavailable(reason: Reason | string, cause?: unknown): Failure<'runtime_unavailable'> {
  const context = { runtime: 'process', reason: typeof reason === 'string' ? explained(reason) : reason, retryAfterSeconds: 5 };
  return new Failure('runtime_unavailable', context, { cause });
}

const reasons: Readonly<Record<string, Reason | string>> = {
  ENOSPC: { code: 'disk_full' },
  EDQUOT: 'the disk quota of its data folder is used up',
  EROFS: 'its data folder is read-only',
  EACCES: 'its data folder may not be written to',
  EMFILE: 'the server has too many open files',
  ENFILE: 'the host has too many open files',
  EAGAIN: 'the host has no room for another process',
  ENOMEM: 'the host has no memory left',
};

/** Runs the task. Turns system errors into the port's failures. */
export async function withFailures<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    const code = errorCode(error);
    if (isFailure(error) || code === undefined || !/^E[A-Z0-9]+$/.test(code)) throw error;
    throw unavailable(reasons[code] ?? `the system returned ${code}`, error);
  }
}
