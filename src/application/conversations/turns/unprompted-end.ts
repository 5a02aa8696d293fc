import type { Clock } from '../../../ports/clock.ts';
import { interval } from '../../timers.ts';

interface UnpromptedEndOptions {
  readonly clock: Clock;
  /** True while the agent waits for a tool or its user. */
  readonly isBusy: () => boolean;
  readonly isCancelled: () => boolean;
}

/** How often to check for output, and after how many checks without any the work is over. */
const checkEveryMs = 2000;
const quietChecks = { working: 8, cancelled: 2 };

/**
 * Decides when work that an agent began by itself is over, because no protocol reports it. If that is too early, further output begins the
 * next turn.
 */
export class UnpromptedEnd {
  readonly #options: UnpromptedEndOptions;
  readonly #over = new AbortController();
  #quiet = 0;

  constructor(options: UnpromptedEndOptions) {
    this.#options = options;
  }

  /** Fires when the work is over. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  noteOutput(): void {
    this.#quiet = 0;
  }

  end(): void {
    this.#over.abort();
  }

  watch(): Disposable {
    return interval(this.#options.clock, checkEveryMs, () => this.#check());
  }

  #check(): void {
    const isCancelled = this.#options.isCancelled();
    this.#quiet = this.#options.isBusy() && !isCancelled ? 0 : this.#quiet + 1;
    if (this.#quiet >= (isCancelled ? quietChecks.cancelled : quietChecks.working)) this.end();
  }
}
