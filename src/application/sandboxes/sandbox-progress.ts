import type { Reason } from '../../domain/reason.ts';
import { nextVersion } from '../../domain/sandbox-lifecycle.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { ProgressReporter } from '../progress-reporter.ts';
import type { CoreDeps } from '../use-cases.ts';

/** Writes the progress of a step into the record of the sandbox, until it is disposed of. */
export class SandboxProgress implements AsyncDisposable {
  readonly #reporter: ProgressReporter;
  readonly #deps: CoreDeps;
  readonly #superseded = new AbortController();
  /** Fires when somebody else has changed the status. The step may be obsolete then. */
  readonly superseded: AbortSignal = this.#superseded.signal;
  #sandbox: Sandbox;

  constructor(deps: CoreDeps, sandbox: Sandbox) {
    this.#deps = deps;
    this.#sandbox = sandbox;
    this.#reporter = new ProgressReporter({ clock: deps.clock, write: (reason) => this.#write(reason), written: sandbox.statusReason });
  }

  /** The last written record. */
  get sandbox(): Sandbox {
    return this.#sandbox;
  }

  report(reason: Reason): void {
    this.#reporter.report(reason);
  }

  /** Ends the reports, so that the step can write the record. Returns the last written record. Idempotent. */
  async end(): Promise<Sandbox> {
    await this.#reporter.end();
    return this.#sandbox;
  }

  /** Like {@link end}, but writes the newest report first. */
  async finish(): Promise<Sandbox> {
    await this.#reporter.finish();
    return this.#sandbox;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#reporter.end();
  }

  /** Returns false if somebody else wrote: another process, which reports from now on, or a change of the status. */
  async #write(reason: Reason): Promise<boolean> {
    const { store, clock } = this.#deps;
    const { id, status, startingSince } = this.#sandbox;
    const next = nextVersion(this.#sandbox, clock.now(), { statusReason: reason });
    const { kind } = await store.sandboxes.replace(next);
    const latest = kind === 'replaced' ? next : await store.sandboxes.find(id);
    const isSame = latest?.deletedAt === null && latest.status === status && latest.startingSince === startingSince;
    if (isSame) this.#sandbox = latest;
    else this.#superseded.abort();
    return kind === 'replaced';
  }
}
