import { isSameReason, type Reason } from '../domain/reason.ts';
import type { Clock } from '../ports/clock.ts';

export interface ProgressReporterDeps {
  readonly clock: Clock;
  /** Returns false if the reports must end. */
  readonly write: (reason: Reason) => Promise<boolean>;
  readonly written: Reason | null;
  /** The minimum delay of a write, in milliseconds, so that a short step writes nothing. Default: 250. */
  readonly quietMs?: number;
}

const everyMs = 1000;

/** Writes the progress of a step into the record: only the newest report, and not too often. A failed write does not fail the step. */
export class ProgressReporter implements AsyncDisposable {
  readonly #deps: ProgressReporterDeps;
  #newest: Reason | null = null;
  #written: Reason | null;
  #nextAt = 0;
  #cancel: (() => void) | null = null;
  #writing: Promise<void> | null = null;
  #ended = false;

  constructor(deps: ProgressReporterDeps) {
    this.#deps = deps;
    this.#written = deps.written;
  }

  report(reason: Reason): void {
    this.#newest = reason;
    if (this.#cancel === null && this.#writing === null) this.#schedule();
  }

  /** Ends the reports. Resolves when the last write has ended. Idempotent. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#cancel?.();
    await this.#writing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end();
  }

  /** Ends the reports and writes the newest one, so that the next decision sees it. */
  async finish(): Promise<void> {
    await this.end();
    await this.#writeNewest();
  }

  #schedule(): void {
    if (this.#ended || isSameReason(this.#newest, this.#written)) return;
    const { clock, quietMs = 250 } = this.#deps;
    // The clock can be set back.
    const delayMs = Math.max(quietMs, Math.min(this.#nextAt - clock.now(), everyMs));
    if (delayMs <= 0) this.#start();
    else this.#cancel = clock.after(delayMs, () => this.#start());
  }

  #start(): void {
    this.#cancel = null;
    this.#nextAt = this.#deps.clock.now() + everyMs;
    this.#writing = this.#writeNewest().finally(() => {
      this.#writing = null;
      this.#schedule();
    });
  }

  async #writeNewest(): Promise<void> {
    const reason = this.#newest;
    if (reason === null || isSameReason(reason, this.#written)) return;
    try {
      if (await this.#deps.write(reason)) this.#written = reason;
      else this.#ended = true;
    } catch {
      // The step does not fail. If the store stays unavailable, the step's own next write fails.
      this.#ended = true;
    }
  }
}
