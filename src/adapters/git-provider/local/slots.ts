/** Lets a bounded number of pieces of work run at the same time, and one of each owner; the others wait in turn. */
export interface Slots {
  /** Rejects with the signal's reason when it fires before the turn comes. */
  use<T>(owner: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

interface Waiting {
  readonly owner: string;
  admit(): void;
}

export function createSlots(limit: number): Slots {
  const busy = new Set<string>();
  const queue: Waiting[] = [];

  function admitNext(): void {
    while (busy.size < limit) {
      const index = queue.findIndex(({ owner }) => !busy.has(owner));
      const [next] = index === -1 ? [] : queue.splice(index, 1);
      if (next === undefined) return;
      busy.add(next.owner);
      next.admit();
    }
  }

  function turn(owner: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const leave = (): void => {
        queue.splice(queue.indexOf(waiting), 1);
        reject(signal.reason);
      };
      const waiting = {
        owner,
        admit: (): void => {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      queue.push(waiting);
      admitNext();
    });
  }

  return {
    async use(owner, signal, work) {
      await turn(owner, signal);
      try {
        signal.throwIfAborted();
        return await work();
      } finally {
        busy.delete(owner);
        admitNext();
      }
    },
  };
}
