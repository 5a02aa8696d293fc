import type { Clock } from '../../ports/clock.ts';

type Timers = Pick<Clock, 'after'>;

/** The machine's own, for adapters whose limits are about what really happens. */
export const realTimers: Timers = {
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** Rejects with the signal's reason if that fires before the promise settles. */
export async function raceSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([aborted.promise, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** A signal that fires after a time, or when one of other signals does. */
export interface Timeout {
  readonly signal: AbortSignal;
  /** To be called when the work has ended. The signal fires then, for parts of the work that a failure left behind. */
  end(): void;
}

const over = new Error('the work is over');

/** `failure` makes the signal's reason after `ms`. Unlike `AbortSignal.timeout`, it runs on a test's clock too. */
export function startTimeout(timers: Timers, ms: number, failure: () => Error, signals: readonly (AbortSignal | undefined)[]): Timeout {
  const controller = new AbortController();
  const cancel = timers.after(ms, () => controller.abort(failure()));
  return {
    signal: AbortSignal.any([controller.signal, ...signals.filter((signal) => signal !== undefined)]),
    end() {
      cancel();
      controller.abort(over);
    },
  };
}

/** Runs work within a timeout. Rejects with the signal's reason as soon as that fires. */
export async function withTimeout<T>(limit: Timeout, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  try {
    limit.signal.throwIfAborted();
    return await raceSignal(work(limit.signal), limit.signal);
  } finally {
    limit.end();
  }
}

/** Waits for so long. Rejects with the signal's reason if that fires first. */
export function pause(timers: Timers, ms: number, signal: AbortSignal): Promise<void> {
  const over = Promise.withResolvers<void>();
  const cancel = timers.after(ms, over.resolve);
  return raceSignal(over.promise, signal).finally(cancel);
}
