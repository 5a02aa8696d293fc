import { onAbort } from '../../ports/abort-signals.ts';

/** How many starts run at a time for each core, if nothing else is configured. A runtime that starts more only gets slower. */
export const startsPerCore = 2;

export interface StartSlot {
  /** Gives the slot to the next. Must be called once. */
  release(): void;
}

/** The order of the slots: first starts that an earlier process left, then starts that owners requested, then pool members. */
const startPriorities = ['interrupted', 'requested', 'pool'] as const;

export type StartPriority = (typeof startPriorities)[number];

interface Waiter {
  readonly owner: string;
  readonly rank: number;
  grant(): void;
}

/** Within a priority, the owner with the oldest last slot goes first, so an owner with many starts does not delay others. */
export class StartQueue {
  readonly #slot: StartSlot = { release: () => this.#grantNext() };
  #free: number;
  #granted = 0;
  /** In the order of arrival. */
  readonly #waiting = new Set<Waiter>();
  /** For every owner of this process: a number that is higher for a later slot. */
  readonly #lastGranted = new Map<string, number>();

  /** `atOnce` is at least 1. */
  constructor(atOnce: number) {
    this.#free = Math.max(1, atOnce);
  }

  /** Waits for a slot. Rejects with the signal's reason when it fires. */
  async take(owner: string, priority: StartPriority, signal: AbortSignal): Promise<StartSlot> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      this.#noteGrant(owner);
      return this.#slot;
    }
    const { promise, resolve, reject } = Promise.withResolvers<StartSlot>();
    const waiter: Waiter = { owner, rank: startPriorities.indexOf(priority), grant: () => resolve(this.#slot) };
    this.#waiting.add(waiter);
    using _ = onAbort(signal, () => {
      this.#waiting.delete(waiter);
      reject(signal.reason);
    });
    return await promise;
  }

  #grantNext(): void {
    const last = ({ owner }: Waiter): number => this.#lastGranted.get(owner) ?? 0;
    const [next] = [...this.#waiting].toSorted((a, b) => a.rank - b.rank || last(a) - last(b));
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#noteGrant(next.owner);
    this.#waiting.delete(next);
    next.grant();
  }

  #noteGrant(owner: string): void {
    this.#granted += 1;
    this.#lastGranted.set(owner, this.#granted);
  }
}
