import { SkepError } from './failures.ts';

/** The longest time of a timer, about 25 days. A longer one fires at once. */
const longestTimerMs = 2 ** 31 - 1;

/** Resolves after the time. Rejects with the signal's reason if the signal fires. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = deferred<void>();
  const timer = setTimeout(resolve, Math.min(ms, longestTimerMs));
  const stop = (): void => reject(signal?.reason);
  signal?.addEventListener('abort', stop);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

/** A signal that fires when another signal fires, or after too long a silence. */
export class Watchdog {
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(outer: AbortSignal | undefined) {
    outer?.throwIfAborted();
    const { signal } = this.#controller;
    this.signal = outer === undefined ? signal : AbortSignal.any([outer, signal]);
  }

  /** Starts the time limit anew. */
  restart(limit: 'connect' | 'silence', ms: number): void {
    this.stop();
    // No connection lasts so long.
    if (ms > longestTimerMs) return;
    this.#timer = setTimeout(() => {
      const message = limit === 'connect' ? 'The server did not answer in time.' : 'The server was silent for too long.';
      this.#controller.abort(new SkepError('timed_out', message, { context: { limit, limit_ms: ms } }));
    }, ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /**
   * Settles like the work, or rejects with the signal's reason. Deno can lose a request's signal after a garbage collection, so this does
   * not rely on the request. `discard` gets a late result.
   */
  async race<T>(work: Promise<T>, discard: (late: T) => unknown = () => {}): Promise<T> {
    const fired = deferred<never>();
    const fire = (): void => fired.reject(this.signal.reason);
    this.signal.addEventListener('abort', fire);
    if (this.signal.aborted) fire();
    try {
      return await Promise.race([work, fired.promise]);
    } catch (error) {
      work.then(discard).catch(() => 'nobody waits for it any more');
      throw this.signal.aborted ? this.signal.reason : error;
    } finally {
      this.signal.removeEventListener('abort', fire);
    }
  }
}

const firstPollMs = 50;
const longestPollMs = 1000;

/** Calls `ask` at growing intervals. Returns the first answer that is wanted. */
export async function poll<T>(ask: () => Promise<T>, isWanted: (answer: T) => boolean, signal?: AbortSignal): Promise<T> {
  for (let ms = firstPollMs; ; ms = Math.min(ms * 1.5, longestPollMs)) {
    const answer = await ask();
    if (isWanted(answer)) return answer;
    await sleep(ms, signal);
  }
}

/** `Promise.withResolvers` is not in Node 20. A rejection that nobody waits for is no error. */
export function deferred<T>() {
  let settle: { readonly resolve: (value: T) => void; readonly reject: (reason: unknown) => void } | undefined;
  const promise = new Promise<T>((resolve, reject) => (settle = { resolve, reject }));
  promise.catch(() => {});
  return { promise, resolve: (value: T) => settle?.resolve(value), reject: (reason: unknown) => settle?.reject(reason) };
}
