import type { Clock } from '../ports/clock.ts';

interface Timeout {
  /** Fires when the time is over. */
  readonly signal: AbortSignal;
  /** Idempotent. */
  cancel(): void;
}

/** Returns a signal that fires after so many milliseconds. */
export function timeout(clock: Clock, ms: number): Timeout {
  const controller = new AbortController();
  const cancel = clock.after(ms, () => controller.abort(new Error(`not within ${ms / 1000} s`)));
  return { signal: controller.signal, cancel };
}

/** Calls back regularly, with at least so many milliseconds between. Returns the function that ends it. */
export function interval(clock: Clock, ms: number, callback: () => void): () => void {
  let cancel = clock.after(ms, tick);
  function tick(): void {
    cancel = clock.after(ms, tick);
    callback();
  }
  return () => cancel();
}

/** Waits for the promise, but not longer than so many milliseconds. Then it resolves to null while the work goes on. */
export async function waitAtMost<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T | null> {
  const late = Promise.withResolvers<null>();
  const cancel = clock.after(ms, () => late.resolve(null));
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    cancel();
  }
}

/** Timers are not set further ahead than this: a later sweep sets them. */
const horizonMs = 120_000;

/** One timer for each key. They only save waiting for the next sweep, and end with the process. */
export class KeyedTimers {
  readonly #clock: Clock;
  readonly #callback: (key: string) => void;
  readonly #set = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  #closed = false;

  constructor(clock: Clock, callback: (key: string) => void) {
    this.#clock = clock;
    this.#callback = callback;
  }

  /** Sets the key's timer to the time, in milliseconds since the epoch, in place of an earlier one; null is never. */
  set(key: string, at: number | null): void {
    const before = this.#set.get(key);
    if (before !== undefined && before.at === at) return;
    before?.cancel();
    this.#set.delete(key);
    const inMs = at === null ? Infinity : at - this.#clock.now();
    // What is due already was tried and could not be done. Trying again at once would not help.
    if (at === null || inMs <= 0 || inMs > horizonMs || this.#closed) return;
    const cancel = this.#clock.after(inMs, () => {
      this.#set.delete(key);
      this.#callback(key);
    });
    this.#set.set(key, { at, cancel });
  }

  close(): void {
    this.#closed = true;
    for (const { cancel } of this.#set.values()) cancel();
    this.#set.clear();
  }
}

const firstBackOffMs = 1000;
const maxBackOffMs = 300_000;

/** Delays what failed: one second after the first failure in a row, twice as long after each further one, at most five minutes. */
export class BackOff {
  readonly #clock: Clock;
  readonly #failures = new Map<string, { readonly inARow: number; readonly at: number; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  failed(key: string): void {
    const at = this.#clock.now();
    const inARow = (this.#failures.get(key)?.inARow ?? 0) + 1;
    this.#failures.set(key, { inARow, at, until: at + Math.min(maxBackOffMs, firstBackOffMs * 2 ** (inARow - 1)) });
  }

  /** Forgets the failures before the time, in milliseconds since the epoch. */
  succeeded(key: string, at: number): void {
    const failed = this.#failures.get(key);
    if (failed !== undefined && failed.at < at) this.#failures.delete(key);
  }

  /** Returns how long to wait still, in milliseconds. */
  waitMs(key: string): number {
    return Math.max(0, (this.#failures.get(key)?.until ?? 0) - this.#clock.now());
  }
}
