import { SkepError } from './failures.ts';
import { sleep } from './waiting.ts';

const firstWaitMs = 250;
const longestWaitMs = 5000;

/** Waits between attempts. The time grows and is partly random. */
export class Backoff {
  readonly #limitMs: number;
  readonly #since = performance.now();
  attempts = 0;

  /** After `forMs` there is no other attempt. */
  constructor(forMs: number) {
    this.#limitMs = forMs;
  }

  /** Waits, at least as long as the server's `Retry-After`. Throws the error if the next attempt would be too late. */
  async wait(error: unknown, signal?: AbortSignal): Promise<void> {
    const asked = error instanceof SkepError ? (error.retryAfterMs ?? 0) : 0;
    const ms = Math.max(asked, (0.5 + Math.random() / 2) * Math.min(longestWaitMs, firstWaitMs * 2 ** this.attempts));
    this.attempts += 1;
    if (performance.now() - this.#since + ms > this.#limitMs) throw error;
    await sleep(ms, signal);
  }
}
