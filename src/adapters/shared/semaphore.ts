/** Lets a bounded number of pieces of work run at the same time; the others wait in turn. */
export interface Semaphore {
  /** Rejects with the signal's reason when it fires before the turn comes. */
  use<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

export function createSemaphore(limit: number): Semaphore {
  let busy = 0;
  const queue: (() => void)[] = [];

  function turn(signal: AbortSignal): Promise<void> {
    if (busy < limit) {
      busy += 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        queue.splice(queue.indexOf(admit), 1);
        reject(signal.reason);
      };
      const admit = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      signal.addEventListener('abort', leave, { once: true });
      queue.push(admit);
    });
  }

  /** Hands the slot on to who waits longest. */
  function release(): void {
    const next = queue.shift();
    if (next === undefined) busy -= 1;
    else next();
  }

  return {
    async use(signal, work) {
      signal.throwIfAborted();
      await turn(signal);
      try {
        signal.throwIfAborted();
        return await work();
      } finally {
        release();
      }
    },
  };
}
