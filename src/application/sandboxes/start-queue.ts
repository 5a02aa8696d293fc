/** How many starts run at a time for each core, if nothing else is configured. An engine that is asked for more only gets slower. */
export const startsPerCore = 2;

/** Leave to run a sandbox, until it is given back. */
export interface StartSlot {
  /** Gives the turn to the next. Idempotent. */
  release(): void;
}

/** Who goes first: what an earlier process left under way, then what owners asked for, then what fills pools. */
export const urgencies = ['again', 'asked', 'pool'] as const;

export type Urgency = (typeof urgencies)[number];

interface Waiter {
  readonly owner: string;
  grant(): void;
}

/** Those who wait, each owner in its own order and the owners in turn, so that nobody's many hold up another's one. */
class Line {
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

  /** Takes the first one out, and puts its owner behind the others. */
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

/** Lets so many sandboxes be started at a time in this process, since an engine that is asked for more only gets slower. */
export class StartQueue {
  #free: number;
  readonly #lines: Readonly<Record<Urgency, Line>> = { again: new Line(), asked: new Line(), pool: new Line() };

  /** `atOnce` is at least 1. */
  constructor(atOnce: number) {
    this.#free = Math.max(1, atOnce);
  }

  /** Waits for a turn. Rejects with the signal's reason when it fires, and the place is given up. */
  async take(owner: string, urgency: Urgency, signal: AbortSignal): Promise<StartSlot> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return this.#turn();
    }
    const { promise, resolve, reject } = Promise.withResolvers<StartSlot>();
    const waiter: Waiter = { owner, grant: () => resolve(this.#turn()) };
    const line = this.#lines[urgency];
    const giveUp = (): void => {
      line.remove(waiter);
      reject(signal.reason);
    };
    line.add(waiter);
    signal.addEventListener('abort', giveUp);
    return await promise.finally(() => signal.removeEventListener('abort', giveUp));
  }

  #turn(): StartSlot {
    let held = true;
    return {
      release: () => {
        if (!held) return;
        held = false;
        this.#pass();
      },
    };
  }

  #pass(): void {
    for (const urgency of urgencies) {
      const waiter = this.#lines[urgency].shift();
      if (waiter !== undefined) return waiter.grant();
    }
    this.#free += 1;
  }
}
