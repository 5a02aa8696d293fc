import { SkepError } from './failures.ts';

/** Resolves after the time. Rejects with the signal's reason when that fires. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal?.aborted === true) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

const firstWaitMs = 250;
const longestWaitMs = 5000;

/** The time between attempts, which grows and is spread by chance. */
export class Backoff {
  readonly #forMs: number;
  readonly #since = performance.now();
  /** How many have failed. */
  attempts = 0;

  /** `forMs`: after this time there is no other attempt. */
  constructor(forMs: number) {
    this.#forMs = forMs;
  }

  /** Waits, at least as long as the server asked for. Throws the error if the next attempt would come too late. */
  async wait(error: unknown, signal?: AbortSignal): Promise<void> {
    const asked = error instanceof SkepError ? (error.retryAfterMs ?? 0) : 0;
    const ms = Math.max(asked, (0.5 + Math.random() / 2) * Math.min(longestWaitMs, firstWaitMs * 2 ** this.attempts));
    this.attempts += 1;
    if (performance.now() - this.#since + ms > this.#forMs) throw error;
    await sleep(ms, signal);
  }
}

/** A signal that fires when another does, or when nothing was seen for too long. */
export class Watch {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timeout: SkepError<'timed_out'> | null = null;

  constructor(outer: AbortSignal | undefined) {
    this.#outer = outer;
    outer?.throwIfAborted();
    outer?.addEventListener('abort', this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  readonly #abort = (): void => this.#controller.abort(this.#outer?.reason);

  /** From now on, something has to be seen within the time. */
  expect(limit: 'connect' | 'silence', ms: number): void {
    clearTimeout(this.#timer);
    if (ms === Infinity) return;
    this.#timer = setTimeout(() => {
      const message = limit === 'connect' ? 'The server did not answer in time.' : 'The server was silent for too long.';
      this.#timeout = new SkepError('timed_out', message, { context: { limit, limit_ms: ms } });
      this.#controller.abort(this.#timeout);
    }, ms);
  }

  /** Nothing has to be seen for now. */
  rest(): void {
    clearTimeout(this.#timer);
  }

  stop(): void {
    this.rest();
    this.#outer?.removeEventListener('abort', this.#abort);
  }

  /** What really ended it: the other signal, the time, or else the error. */
  reasonOf(error: unknown): unknown {
    return this.#outer?.aborted === true ? this.#outer.reason : (this.#timeout ?? error);
  }
}

const firstPollMs = 50;
const longestPollMs = 1000;

/** Asks again and again, less often from time to time, and returns the first answer that is wanted. */
export async function poll<T>(ask: () => Promise<T>, isWanted: (answer: T) => boolean, signal?: AbortSignal): Promise<T> {
  for (let ms = firstPollMs; ; ms = Math.min(ms * 1.5, longestPollMs)) {
    const answer = await ask();
    if (isWanted(answer)) return answer;
    await sleep(ms, signal);
  }
}
