import type { Clock } from '../ports/clock.ts';

export interface Deadline {
  /** Fires when the time is over. */
  readonly signal: AbortSignal;
  /** Takes it back. Idempotent. */
  cancel(): void;
}

/** A limit on a wait, by the clock. */
export function deadline(clock: Clock, ms: number): Deadline {
  const controller = new AbortController();
  const cancel = clock.after(ms, () => controller.abort(new Error(`not within ${ms / 1000} s`)));
  return { signal: controller.signal, cancel };
}

/** Calls back again and again, with at least so many milliseconds between; answers with the function that ends it. */
export function every(clock: Clock, ms: number, callback: () => void): () => void {
  let cancel = clock.after(ms, tick);
  function tick(): void {
    cancel = clock.after(ms, tick);
    callback();
  }
  return () => cancel();
}
