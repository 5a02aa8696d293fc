import type { Clock } from '../ports/clock.ts';

interface Timeout {
  /** Fires when the time is over. */
  readonly signal: AbortSignal;
  /** Takes it back. Idempotent. */
  cancel(): void;
}

/** A limit on a wait, by the clock. */
export function timeout(clock: Clock, ms: number): Timeout {
  const controller = new AbortController();
  const cancel = clock.after(ms, () => controller.abort(new Error(`not within ${ms / 1000} s`)));
  return { signal: controller.signal, cancel };
}

/** Calls back again and again, with at least so many milliseconds between; answers with the function that ends it. */
export function interval(clock: Clock, ms: number, callback: () => void): () => void {
  let cancel = clock.after(ms, tick);
  function tick(): void {
    cancel = clock.after(ms, tick);
    callback();
  }
  return () => cancel();
}

/** Waits for the promise, but not longer than that: null then, while the work goes on. */
export async function waitAtMost<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T | null> {
  const late = Promise.withResolvers<null>();
  const cancel = clock.after(ms, () => late.resolve(null));
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    cancel();
  }
}

/** What is due later than this is left to the sweeps to find again. */
const horizonMs = 120_000;

/** Rings for each key at its time. They only save waiting for the next sweep, and are gone with the process. */
export class KeyedTimers {
  readonly #clock: Clock;
  readonly #ring: (key: string) => void;
  readonly #set = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  #closed = false;

  constructor(clock: Clock, ring: (key: string) => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings at the time, in milliseconds since the epoch, instead of when it was to before; null is never. */
  set(key: string, at: number | null): void {
    const before = this.#set.get(key);
    if (before !== undefined && before.at === at) return;
    before?.cancel();
    this.#set.delete(key);
    const inMs = at === null ? Infinity : at - this.#clock.now();
    // What is due already and was not done could not be done: ringing again at once would not help.
    if (at === null || inMs <= 0 || inMs > horizonMs || this.#closed) return;
    const cancel = this.#clock.after(inMs, () => {
      this.#set.delete(key);
      this.#ring(key);
    });
    this.#set.set(key, { at, cancel });
  }

  close(): void {
    this.#closed = true;
    for (const { cancel } of this.#set.values()) cancel();
    this.#set.clear();
  }
}
