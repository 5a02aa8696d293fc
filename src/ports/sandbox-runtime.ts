import type { ObservedSandbox } from '../domain/sandbox.ts';
import type { SandboxSpec } from '../domain/sandbox-spec.ts';
import type { CheckResult } from './check-result.ts';

/** What a runtime needs to make a sandbox run. */
export interface SandboxLaunch {
  /** What the runtime knows the sandbox by. */
  readonly id: string;
  readonly spec: SandboxSpec;
  /** Delivered to the sandbox in the variable that the spec names. */
  readonly sessionApiKey: string;
}

/** Told while a launch goes on: a line for the sandbox's `status_detail`. */
export type Progress = (detail: string) => void;

/** What the spec needs is at hand; or it can't be had, and why in words. */
export type Provision = { readonly kind: 'provided' } | { readonly kind: 'refused'; readonly detail: string };

/** A command to run in a running sandbox, beside its own. */
export interface ExecutionRequest {
  readonly command: readonly string[];
  /** Besides the sandbox's own variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Absolute path inside the sandbox; the spec's working directory unless it is said. */
  readonly workingDir?: string;
}

/**
 * A command that runs in a sandbox. What nobody reads holds the command back; it is never gathered in memory. A stream
 * that is cancelled is drained instead.
 */
export interface Execution {
  /** Closing it closes the command's standard input. */
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** What the command itself knows its working directory as, where that is not the path asked for: without isolation it is one of the host's. */
  readonly workingDir?: string;
  /**
   * The exit code, once the command has ended; 128 and the signal's number where a signal ended it. Null where it can't be
   * known: the sandbox or its runtime went away. Never rejects. A command that can't be run ends with 126 or 127 and says why on
   * its standard error.
   */
  readonly exited: Promise<number | null>;
  /** Ends the command and all that it started, at once. Answers when it has ended. Idempotent. */
  kill(): Promise<void>;
}

/**
 * Runs sandboxes. It holds the fact of each, and survives the process that uses it: a runtime object made anew over the
 * same engine or folder finds every sandbox that an earlier one started.
 *
 * Every method but `execute` is idempotent, so that a call whose answer was lost can be made again, and those that move a
 * sandbox answer with the fact that holds afterwards. What the sandbox itself can't do (its command does not exist, its image is missing) is a fact
 * with a `detail`, not a failure. Failures are `runtime_unavailable` and `runtime_timeout`: nothing is known then, and the call
 * may or may not have had its effect. Calls for different sandboxes don't wait for one another; those for one sandbox
 * may overlap, and leave it in a state that one of them asked for.
 */
export interface SandboxRuntime {
  /** The name it is configured by: `process`, `docker`. */
  readonly name: string;

  /**
   * Gets what sandboxes of the spec need and this host lacks, an image for one, which may take long; answers at once where nothing
   * lacks. Calls for the same thing share the work. When `signal` fires, it rejects with the signal's reason.
   */
  provide(spec: SandboxSpec, progress: Progress, signal: AbortSignal): Promise<Provision>;

  /**
   * Makes the sandbox if there is nothing of it, and runs it if it never ran. `running` or `frozen`: nothing happens.
   * `stopped`: nothing happens either, since a start that ended is not tried again.
   * The answer does not wait for readiness. When `signal` fires, it rejects with the signal's reason, and
   * what is made so far stays to be found.
   */
  start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<ObservedSandbox>;

  /** Holds all processes of a running sandbox; memory and processes are kept. Anything else is left as it is. */
  freeze(id: string): Promise<ObservedSandbox>;

  /** Ends all processes of a running or frozen sandbox, asking first; the files are kept. */
  stop(id: string): Promise<ObservedSandbox>;

  /** Lets a frozen sandbox go on; runs a stopped one again over its files. Never makes one: an absent one stays so. */
  resume(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox>;

  /** Ends all processes and removes the files. */
  remove(id: string): Promise<void>;

  inspect(id: string): Promise<ObservedSandbox>;

  /** Every sandbox of this deployment that the runtime has anything of. */
  list(): Promise<readonly ObservedSandbox[]>;

  /**
   * Runs a command in a running sandbox, as the user that the sandbox's own runs as. Answers when it has begun. Failures
   * besides: `sandbox_not_found`, `sandbox_not_running`. When `signal` fires before it has begun, it rejects with the
   * signal's reason and nothing goes on running. Freezing the sandbox holds the command, and stopping it ends the command.
   */
  execute(id: string, request: ExecutionRequest, signal: AbortSignal): Promise<Execution>;

  /**
   * Unpacks a tar below a directory inside the sandbox, which is made where it is not there; what is there already
   * stays, or is replaced file by file. Modes and times are kept; everything belongs to the user that the sandbox's programs
   * run as. Symbolic links are content, wherever they point, and are never followed while unpacking: an entry whose name leads out
   * of the directory, by itself or through a link, is refused. The sandbox may run, be frozen or be stopped. The archive is read as it is written, never
   * gathered. Failures besides: `sandbox_not_found`, `invalid_request` (the path, or an archive that is refused; part of it may have been unpacked).
   */
  putFiles(id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void>;

  /**
   * A tar of the file or directory inside the sandbox; names begin with the last segment of its path. Links are content. Failures
   * besides: `sandbox_not_found`, `file_not_found`, `invalid_request` (the path). Cancelling the stream ends the work.
   */
  getFiles(id: string, path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;

  /**
   * Calls the listener when something may have happened to a sandbox without being asked for. It only wakes: the fact
   * is read anew. Events may repeat, and may be missed. Answers with the function that ends it.
   */
  subscribe(listener: (id: string) => void): () => void;

  /** One line for a person: whether it answers. Never fails. */
  check(): Promise<CheckResult>;

  /** Ends what it holds open, executions included; sandboxes go on. Idempotent. */
  close(): Promise<void>;
}
