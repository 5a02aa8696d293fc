import pLimit from 'p-limit';

/** Runs a bounded number of tasks at the same time; the others wait in order. */
export interface Semaphore {
  /**
   * Runs the task when a place is free. Rejects with the signal's reason if it fires while the task waits. A task that has started keeps
   * its place, and is waited for, until it settles.
   */
  use<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T>;
}

export function createSemaphore(concurrency: number): Semaphore {
  const limit = pLimit(concurrency);
  return {
    use: (signal, task) =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted();
        const leave = (): void => reject(signal.reason);
        signal.addEventListener('abort', leave, { once: true });
        const run = async (): ReturnType<typeof task> => {
          signal.removeEventListener('abort', leave);
          signal.throwIfAborted();
          return await task();
        };
        limit(run).then(resolve, reject);
      }),
  };
}
