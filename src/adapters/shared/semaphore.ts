import pLimit from 'p-limit';
import { raceSignal } from './timeout.ts';

/** Lets a bounded number of pieces of work run at the same time; the others wait in turn. */
export interface Semaphore {
  /** Rejects with the signal's reason if it fires before the work begins. Work that has begun is not interrupted. */
  use<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

export function createSemaphore(size: number): Semaphore {
  const limit = pLimit(size);
  return {
    async use(signal, work) {
      signal.throwIfAborted();
      const begun = Promise.withResolvers<void>();
      const result = limit(async () => {
        signal.throwIfAborted();
        begun.resolve();
        return work();
      });
      // Who has left hears no more of it.
      result.catch(() => {});
      await raceSignal(begun.promise, signal);
      return result;
    },
  };
}
