import { isFailure, isFailureOf, logFieldsOf } from '../domain/failure.ts';
import { backOffMs } from '../domain/back-off.ts';
import { onAbort, raceSignal } from '../ports/abort-signals.ts';
import type { Clock } from '../ports/clock.ts';
import type { Logger } from '../ports/logger.ts';

/** Returns a signal that fires after `ms` milliseconds, unless it is disposed of before. */
export function timeout(clock: Clock, ms: number): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const cancel = clock.after(ms, () => controller.abort(new Error(`not within ${ms / 1000} s`)));
  return { signal: controller.signal, [Symbol.dispose]: cancel };
}

/** Calls `callback` again and again, at least `ms` milliseconds apart, until the result is disposed of. */
export function interval(clock: Clock, ms: number, callback: () => void): Disposable {
  let cancel = clock.after(ms, tick);
  function tick(): void {
    cancel = clock.after(ms, tick);
    callback();
  }
  return { [Symbol.dispose]: () => cancel() };
}

/** Waits for the promise for at most `ms` milliseconds. Then resolves to null, while the work continues. */
export async function waitAtMost<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T | null> {
  const late = Promise.withResolvers<null>();
  using ends = new DisposableStack();
  ends.defer(clock.after(ms, () => late.resolve(null)));
  return await Promise.race([promise, late.promise]);
}

/** Waits for an answer of the runtime. Resolves to null if it fails, which is logged, or if the signal fires first. */
export async function answerOrNull<T>(answer: Promise<T>, signal: AbortSignal, logger: Logger, message: string): Promise<T | null> {
  try {
    return await raceSignal(answer, signal);
  } catch (error) {
    if (signal.aborted) return null;
    if (!isFailure(error)) throw error;
    logger.warn(logFieldsOf(error), message);
    return null;
  }
}

/** How long work that must not be lost is repeated while the store is unavailable. */
const storeOutageMs = 120_000;
const maxPauseMs = 5000;
/** The limits after the signal has fired: of all tries together, and of the pause between two. */
const lastTriesMs = 5000;
const lastPauseMs = 500;

/** Repeats the work while the store is unavailable: two minutes, or five seconds after the signal. A failed try may have had its effect. */
export async function retryThroughStoreOutage<T>(clock: Clock, signal: AbortSignal, work: (failures: number) => Promise<T>): Promise<T> {
  let isOver = false;
  using ends = new DisposableStack();
  const giveUpAfter = (ms: number): void => ends.defer(clock.after(ms, () => (isOver = true)));
  giveUpAfter(storeOutageMs);
  const fired = Promise.withResolvers<void>();
  ends.use(onAbort(signal, () => {
    giveUpAfter(lastTriesMs);
    fired.resolve();
  }));
  for (let failures = 0; ; ) {
    try {
      return await work(failures);
    } catch (error) {
      if (isOver || !isFailureOf(error, 'store_unavailable')) throw error;
    }
    failures += 1;
    if (signal.aborted) await pause(clock, lastPauseMs);
    else await waitAtMost(clock, Math.min(maxPauseMs, backOffMs(failures)), fired.promise);
  }
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

/** Timers that are due later are not set. A later sweep sets them. */
const maxTimerMs = 120_000;

/** One timer per key. The next sweep would do the same work later. Not persisted. */
export class KeyedTimers {
  readonly #clock: Clock;
  readonly #callback: (key: string) => void;
  readonly #set = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  #closed = false;

  constructor(clock: Clock, callback: (key: string) => void) {
    this.#clock = clock;
    this.#callback = callback;
  }

  /** Sets the key's timer to the time, in milliseconds since the epoch. Replaces an earlier one. Null only removes it. */
  set(key: string, at: number | null): void {
    const before = this.#set.get(key);
    if (before !== undefined && before.at === at) return;
    before?.cancel();
    this.#set.delete(key);
    const inMs = at === null ? Infinity : at - this.#clock.now();
    // Work that is already due was tried and could not be done. An immediate retry would not help.
    if (at === null || inMs <= 0 || inMs > maxTimerMs || this.#closed) return;
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

/** Delays the next try after a failure. Each further failure in a row makes the delay longer. */
export class BackOff {
  readonly #clock: Clock;
  readonly #failures = new Map<string, { readonly inARow: number; readonly at: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  failed(key: string): void {
    this.#failures.set(key, { inARow: (this.#failures.get(key)?.inARow ?? 0) + 1, at: this.#clock.now() });
  }

  /** Forgets the failures before the time, in milliseconds since the epoch. Default: all. */
  succeeded(key: string, at = Infinity): void {
    const failed = this.#failures.get(key);
    if (failed !== undefined && failed.at < at) this.#failures.delete(key);
  }

  /** Returns the remaining delay, in milliseconds. */
  waitMs(key: string): number {
    const failed = this.#failures.get(key);
    const passedMs = this.#clock.now() - (failed?.at ?? 0);
    // After a jump of the time to an earlier one, the delay is over.
    return failed === undefined || passedMs < 0 ? 0 : Math.max(0, backOffMs(failed.inARow) - passedMs);
  }
}
