import pLimit from 'p-limit';
import { onAbort } from '../../ports/abort-signals.ts';

export type Semaphore = ReturnType<typeof createSemaphore>;

/** Limits how many tasks run at the same time. The others wait in order. */
export function createSemaphore(concurrency: number) {
  const limit = pLimit(concurrency);
  return {
    /** Rejects with the signal's reason if it fires while the task waits. A started task counts until it settles. */
    use: <T>(signal: AbortSignal, task: () => Promise<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted();
        const waiting = onAbort(signal, () => reject(signal.reason));
        const run = async (): Promise<T> => {
          waiting[Symbol.dispose]();
          signal.throwIfAborted();
          return await task();
        };
        limit(run).then(resolve, reject);
      }),
  };
}
