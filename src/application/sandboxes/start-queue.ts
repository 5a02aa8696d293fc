/** How many starts run at a time for each core, if nothing else is configured. A runtime that starts more only gets slower. */
export const startsPerCore = 2;

/** The permission to start one sandbox now. */
export interface StartSlot {
  /** Gives the slot to the next. Idempotent. */
  release(): void;
}

/** Who gets a slot first: starts that an earlier process left, then what owners requested, then pool members. */
export const startPriorities = ['interrupted', 'requested', 'pool'] as const;

export type StartPriority = (typeof startPriorities)[number];

interface Waiter {
  readonly owner: string;
  grant(): void;
}

/** Waiters of one priority: first in, first out for each owner, and the owners in turn, so that one with many does not delay others. */
class FairQueue {
  readonly #byOwner = new Map<string, Set<Waiter>>();

  add(waiter: Waiter): void {
    const own = this.#byOwner.get(waiter.owner) ?? new Set();
    this.#byOwner.set(waiter.owner, own.add(waiter));
  }

  remove(waiter: Waiter): void {
    const own = this.#byOwner.get(waiter.owner);
    own?.delete(waiter);
    if (own?.size === 0) this.#byOwner.delete(waiter.owner);
  }

  /** Removes and returns the first waiter. Its owner comes last then. */
  shift(): Waiter | undefined {
    for (const [owner, own] of this.#byOwner) {
      for (const waiter of own) {
        own.delete(waiter);
        this.#byOwner.delete(owner);
        if (own.size > 0) this.#byOwner.set(owner, own);
        return waiter;
      }
    }
    return undefined;
  }
}

/** Limits how many sandboxes start at a time in this process. */
export class StartQueue {
  #free: number;
  readonly #queues: Readonly<Record<StartPriority, FairQueue>> = {
    interrupted: new FairQueue(),
    requested: new FairQueue(),
    pool: new FairQueue(),
  };

  /** `atOnce` is at least 1. */
  constructor(atOnce: number) {
    this.#free = Math.max(1, atOnce);
  }

  /** Waits for a slot. Rejects with the signal's reason when it fires. */
  async take(owner: string, priority: StartPriority, signal: AbortSignal): Promise<StartSlot> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return this.#slot();
    }
    const { promise, resolve, reject } = Promise.withResolvers<StartSlot>();
    const waiter: Waiter = { owner, grant: () => resolve(this.#slot()) };
    const queue = this.#queues[priority];
    const giveUp = (): void => {
      queue.remove(waiter);
      reject(signal.reason);
    };
    queue.add(waiter);
    signal.addEventListener('abort', giveUp);
    return await promise.finally(() => signal.removeEventListener('abort', giveUp));
  }

  #slot(): StartSlot {
    let held = true;
    return {
      release: () => {
        if (!held) return;
        held = false;
        this.#grantNext();
      },
    };
  }

  #grantNext(): void {
    for (const priority of startPriorities) {
      const waiter = this.#queues[priority].shift();
      if (waiter !== undefined) return waiter.grant();
    }
    this.#free += 1;
  }
}
