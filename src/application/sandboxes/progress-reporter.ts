import type { Sandbox } from '../../domain/sandbox.ts';
import { reportProgress } from '../../domain/sandbox-lifecycle.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';

/** What is over sooner is not told. */
const quietMs = 250;
const everyMs = 1000;

/** Writes what goes on with a sandbox into its `statusDetail` while a step is taken: the newest only, and now and then. */
export class ProgressReporter {
  readonly #store: SandboxStore;
  readonly #clock: Clock;
  readonly #moved = new AbortController();
  #sandbox: Sandbox;
  #newest: string | null = null;
  #told: string | null;
  #cancel: (() => void) | null = null;
  #writing: Promise<void> | null = null;
  #ended = false;

  constructor(store: SandboxStore, clock: Clock, sandbox: Sandbox) {
    this.#store = store;
    this.#clock = clock;
    this.#sandbox = sandbox;
    this.#told = sandbox.statusDetail;
  }

  /** The record as it was written last. */
  get sandbox(): Sandbox {
    return this.#sandbox;
  }

  /** Fires when somebody else has moved the sandbox on, so that the step may not be wanted any more. */
  get moved(): AbortSignal {
    return this.#moved.signal;
  }

  report(detail: string): void {
    this.#newest = detail;
    if (this.#cancel === null && this.#writing === null) this.#after(quietMs);
  }

  /** Nothing is written any more when this has answered. Idempotent. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#cancel?.();
    await this.#writing;
  }

  /** The same, with the newest written by then, so that whoever decides next knows of it. */
  async finish(): Promise<void> {
    await this.end();
    await this.#write();
  }

  #after(ms: number): void {
    if (this.#ended || this.#newest === this.#told) return;
    this.#cancel = this.#clock.after(ms, () => {
      this.#cancel = null;
      this.#writing = this.#write().finally(() => {
        this.#writing = null;
        this.#after(everyMs);
      });
    });
  }

  async #write(): Promise<void> {
    const detail = this.#newest;
    if (detail === null || detail === this.#told) return;
    const next = reportProgress(this.#sandbox, detail, this.#clock.now());
    try {
      const { kind } = await this.#store.replace(next);
      if (kind === 'stale') return await this.#lookAgain();
      this.#sandbox = next;
      this.#told = detail;
    } catch {
      // The step goes on without being told of; whatever it writes itself shows whether the store answers.
      this.#ended = true;
    }
  }

  /** Somebody else has written: one who drives it too tells of it now, and any other has moved it on. */
  async #lookAgain(): Promise<void> {
    this.#ended = true;
    const now = await this.#store.find(this.#sandbox.id);
    const { status, startingSince: turnAt } = this.#sandbox;
    const same = now !== null && now.deletedAt === null && now.status === status && now.startingSince === turnAt;
    if (same) {
      this.#sandbox = now;
      this.#told = now.statusDetail;
    } else {
      this.#moved.abort();
    }
  }
}
