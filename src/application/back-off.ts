import type { Clock } from '../ports/clock.ts';

const firstMs = 1000;
const mostMs = 300_000;

/** Holds back what failed: a second after the first failure in a row, twice as long after each further one, five minutes at most. */
export class BackOff {
  readonly #clock: Clock;
  readonly #failures = new Map<string, { readonly inARow: number; readonly at: number; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  failed(key: string): void {
    const at = this.#clock.now();
    const inARow = (this.#failures.get(key)?.inARow ?? 0) + 1;
    this.#failures.set(key, { inARow, at, until: at + Math.min(mostMs, firstMs * 2 ** (inARow - 1)) });
  }

  /** It went well at the time, in milliseconds since the epoch: failures before that are over. */
  succeeded(key: string, at: number): void {
    const failed = this.#failures.get(key);
    if (failed !== undefined && failed.at < at) this.#failures.delete(key);
  }

  /** How long the key is held back still, in milliseconds; 0 for not at all. */
  waitMs(key: string): number {
    return Math.max(0, (this.#failures.get(key)?.until ?? 0) - this.#clock.now());
  }
}
