import { onAbort, raceSignal } from '../../ports/abort-signals.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ProviderFailures } from './provider-failures.ts';

type Timers = Pick<Clock, 'after'>;

/** The longest delay of one platform timer, in milliseconds. A longer one would fire at once. */
const maxDelayMs = 2 ** 31 - 1;

/** The machine's own timers, for adapters whose limits need real time. */
export const realTimers: Timers = { after: (ms, callback) => startTimer(ms, callback, true) };

/** Implements `Clock.after`. */
export function startTimer(ms: number, callback: () => void, keepsProcess: boolean): () => void {
  const due = performance.now() + ms;
  const arm = (): NodeJS.Timeout => {
    const part = setTimeout(fire, Math.min(maxDelayMs, Math.max(0, Math.ceil(due - performance.now()))));
    return keepsProcess ? part : part.unref();
  };
  // A timer can fire a little early, and a long wait needs several timers.
  const fire = (): void => {
    if (performance.now() < due) timer = arm();
    else callback();
  };
  let timer = arm();
  return () => clearTimeout(timer);
}

/**
 * A signal that fires after a time, or together with one of several other signals. Must be disposed of when the work has ended. Then the
 * signal fires, to end parts of the work that still run after a failure.
 */
export interface Timeout extends Disposable {
  readonly signal: AbortSignal;
}

const workOver = new Error('the work is over');

/** `failure` creates the signal's reason after `ms`. Unlike `AbortSignal.timeout`, this also works with a test's clock. */
export function startTimeout(timers: Timers, ms: number, failure: () => Error, signals: readonly (AbortSignal | undefined)[]): Timeout {
  const controller = new AbortController();
  const cancel = timers.after(ms, () => controller.abort(failure()));
  return {
    signal: AbortSignal.any([controller.signal, ...signals.filter((signal) => signal !== undefined)]),
    [Symbol.dispose]() {
      cancel();
      controller.abort(workOver);
    },
  };
}

/** Returns a signal that fires `ms` after the given one, or at once if that has fired before. It does not fire after its disposal. */
export function startDelay(signal: AbortSignal | undefined, ms: number): Disposable & Pick<Timeout, 'signal'> {
  const later = new AbortController();
  const ends = new DisposableStack();
  if (signal?.aborted === true) later.abort(signal.reason);
  else if (signal !== undefined) ends.use(onAbort(signal, () => ends.defer(realTimers.after(ms, () => later.abort(signal.reason)))));
  return { signal: later.signal, [Symbol.dispose]: () => ends.dispose() };
}

/** Runs work within a timeout. Rejects with the signal's reason as soon as it fires. */
export async function withTimeout<T>(limit: Timeout, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  using _ = limit;
  limit.signal.throwIfAborted();
  return await raceSignal(work(limit.signal), limit.signal);
}

/** Waits for `ms`. Rejects with the signal's reason if it fires first. */
export function sleep(timers: Timers, ms: number, signal: AbortSignal): Promise<void> {
  const workOver = Promise.withResolvers<void>();
  const cancel = timers.after(ms, workOver.resolve);
  return raceSignal(workOver.promise, signal).finally(cancel);
}

export type TimeLimit = ReturnType<typeof createTimeLimit>;

/** Limits the time of a provider's work. `close` ends all work. Work that ends early rejects with the signal's reason. */
export function createTimeLimit(timers: Timers, timeoutMs: number, { timedOut, failed }: ProviderFailures) {
  const controller = new AbortController();
  const closing: AbortSignal = controller.signal;
  return {
    closing,
    run: <T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
      withTimeout(startTimeout(timers, timeoutMs, () => timedOut(timeoutMs), [signal, closing]), work),
    close: () => controller.abort(failed({ code: 'closed' })),
  };
}
