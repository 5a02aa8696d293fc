import pLimit from 'p-limit';

export type Semaphore = ReturnType<typeof createSemaphore>;

/** Limits how many tasks run at the same time. The others wait in order. */
export function createSemaphore(concurrency: number) {
  const limit = pLimit(concurrency);
  return {
    /** Rejects with the signal's reason if it fires while the task waits. A started task counts until it settles. */
    use: <T>(signal: AbortSignal, task: () => Promise<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted();
        const leave = (): void => reject(signal.reason);
        signal.addEventListener('abort', leave, { once: true });
        const run = async (): Promise<T> => {
          signal.removeEventListener('abort', leave);
          signal.throwIfAborted();
          return await task();
        };
        limit(run).then(resolve, reject);
      }),
  };
}
