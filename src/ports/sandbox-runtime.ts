import type { SandboxFact } from '../domain/sandbox-fact.ts';
import type { SandboxSpec } from '../domain/sandbox-spec.ts';
import type { CheckResult } from './check.ts';

/** What a runtime needs to make a sandbox run. */
export interface SandboxLaunch {
  readonly id: string;
  readonly spec: SandboxSpec;
  /** Delivered to the sandbox in the variable that the spec names. */
  readonly sessionApiKey: string;
}

/** Told while a launch goes on: a line for the sandbox's `status_detail`. */
export type Progress = (detail: string) => void;

/**
 * Runs sandboxes. It holds the fact of each, and survives the process that uses it: a runtime object made anew over the
 * same engine or folder finds every sandbox that an earlier one started.
 *
 * Every method is idempotent, so that a call whose answer was lost can be made again, and answers with the fact that
 * holds afterwards. What the sandbox itself can't do (its command does not exist, its image is missing) is a fact with a
 * `detail`, not a failure. Failures are `runtime_unavailable` and `runtime_timeout`: nothing is known then, and the call
 * may or may not have had its effect. Calls for different sandboxes don't wait for one another; those for one sandbox
 * may overlap, and leave it in a state that one of them asked for.
 */
export interface SandboxRuntime {
  /** The name it is configured by: `process`, `docker`. */
  readonly name: string;

  /**
   * Makes the sandbox if there is nothing of it, and runs it if it never ran. `running` or `frozen`: nothing happens.
   * `stopped`: nothing happens either, since a start that ended is not tried again.
   * The answer does not wait for readiness. When `signal` fires, it rejects with the signal's reason, and
   * what is made so far stays to be found.
   */
  start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<SandboxFact>;

  /** Holds all processes of a running sandbox; memory and processes are kept. Anything else is left as it is. */
  freeze(id: string): Promise<SandboxFact>;

  /** Ends all processes of a running or frozen sandbox, asking first; the files are kept. */
  stop(id: string): Promise<SandboxFact>;

  /** Lets a frozen sandbox go on; runs a stopped one again over its files. Never makes one: an absent one stays so. */
  resume(launch: SandboxLaunch, signal: AbortSignal): Promise<SandboxFact>;

  /** Ends all processes and removes the files. */
  remove(id: string): Promise<void>;

  inspect(id: string): Promise<SandboxFact>;

  /** Every sandbox of this deployment that the runtime has anything of. */
  list(): Promise<readonly SandboxFact[]>;

  /**
   * Calls the listener when something may have happened to a sandbox without being asked for. It only wakes: the fact
   * is read anew. Events may repeat, and may be missed. Answers with the function that ends it.
   */
  subscribe(listener: (id: string) => void): () => void;

  /** One line for a person: whether it answers. Never fails. */
  check(): Promise<CheckResult>;

  /** Ends what it holds open; sandboxes go on. Idempotent. */
  close(): Promise<void>;
}
