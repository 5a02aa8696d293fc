import type { Reason } from '../domain/reason.ts';
import type { ObservedSandbox } from '../domain/sandbox.ts';
import type { SandboxSpec } from '../domain/sandbox-spec.ts';
import type { CheckResult } from './check-result.ts';

/** What a runtime needs to start a sandbox. */
export interface SandboxLaunch {
  /** The sandbox's id in the runtime. */
  readonly id: string;
  readonly spec: SandboxSpec;
  /** Passed to the sandbox in the variable that the spec names. */
  readonly sessionApiKey: string;
}

/** Receives what happens during a start. */
export type Progress = (reason: Reason) => void;

/** `refused`: what the spec needs is not available, and why. */
export type Provision = { readonly kind: 'provided' } | { readonly kind: 'refused'; readonly reason: Reason };

/** A command to run in a running sandbox. */
export interface ExecutionRequest {
  readonly command: readonly string[];
  /** Added to the sandbox's own variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Absolute path inside the sandbox. Default: the spec's working directory. */
  readonly workingDir?: string;
}

/**
 * A command that runs in a sandbox. Output that nobody reads blocks the command; it is never collected in memory. The rest of
 * a cancelled stream is read and dropped.
 */
export interface Execution {
  /** Closing it closes the command's standard input. */
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** The command's own name for its working directory, if it is not the requested path: without isolation, a path of the host. */
  readonly workingDir?: string;
  /**
   * Resolves to the exit code when the command has ended; 128 plus the signal's number if a signal ended it; null if it can't be
   * known because the sandbox or its runtime is gone. Never rejects. A command that can't run ends with 126 or 127 and says
   * why on its standard error.
   */
  readonly exited: Promise<number | null>;
  /** Ends the command and all that it started at once. Resolves when it has ended. Idempotent. */
  kill(): Promise<void>;
}

/**
 * Runs sandboxes. They survive the process that uses the runtime: a new runtime object over the same engine or folder finds
 * every sandbox that an earlier one started.
 *
 * Every method but `execute` is idempotent, so a call whose answer was lost can be repeated. Methods that change a sandbox
 * return its state afterwards. What the sandbox itself can't do (its command does not exist, its image is missing) is a state
 * with a `reason`, not a failure. Failures: `runtime_unavailable` and `runtime_timeout`; the call may have had its effect or
 * not. Calls for different sandboxes don't wait for each other. Calls for one sandbox may overlap, and leave it in a state that
 * one of them requested.
 */
export interface SandboxRuntime {
  /** The name in the configuration: `process`, `docker`. */
  readonly name: string;

  /**
   * Gets what sandboxes of the spec need and this host lacks, for example an image. That may take long; it returns at once if
   * nothing is missing. Calls for the same thing share the work. Rejects with the signal's reason when it fires.
   */
  provide(spec: SandboxSpec, progress: Progress, signal: AbortSignal): Promise<Provision>;

  /**
   * Creates the sandbox if there is nothing of it, and runs it if it never ran. Does nothing if it is `running`, `frozen` or
   * `stopped`: a start that ended is not tried again. Does not wait for readiness. Rejects with the signal's reason when it
   * fires; what exists by then stays and is found later.
   */
  start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<ObservedSandbox>;

  /** Freezes all processes of a running sandbox; memory and processes are kept. Does nothing in any other state. */
  freeze(id: string): Promise<ObservedSandbox>;

  /** Ends all processes of a running or frozen sandbox, gracefully first. The files are kept. */
  stop(id: string): Promise<ObservedSandbox>;

  /** Continues a frozen sandbox, or runs a stopped one again over its files. Never creates one. */
  resume(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox>;

  /** Ends all processes and removes the files. */
  remove(id: string): Promise<void>;

  inspect(id: string): Promise<ObservedSandbox>;

  /** Returns every sandbox of this deployment of which the runtime has anything. */
  list(): Promise<readonly ObservedSandbox[]>;

  /**
   * Runs a command in a running sandbox, as the user of the sandbox's own command. Resolves when it has begun. More failures:
   * `sandbox_not_found`, `sandbox_not_running`. If `signal` fires before it has begun, it rejects with the signal's reason and
   * nothing keeps running. Freezing the sandbox freezes the command; stopping it ends the command.
   */
  execute(id: string, request: ExecutionRequest, signal: AbortSignal): Promise<Execution>;

  /**
   * Unpacks a tar below a directory inside the sandbox. The directory is made if it does not exist; existing files stay or are
   * replaced one by one. Modes and times are kept; everything belongs to the user of the sandbox's programs. Symbolic links are
   * content and are never followed: an entry whose name leads out of the directory, by itself or through a link, is refused.
   * The sandbox may be running, frozen or stopped. The archive is never in memory as a whole. More failures:
   * `sandbox_not_found`, `invalid_request` (the path, or a refused archive; part of it may be unpacked).
   */
  putFiles(id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void>;

  /**
   * Returns a tar of the file or directory inside the sandbox. Names begin with the last segment of its path. Links are content.
   * More failures: `sandbox_not_found`, `file_not_found`, `invalid_request` (the path). Cancelling the stream ends the work.
   */
  getFiles(id: string, path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;

  /**
   * Calls the listener when something may have happened to a sandbox. It is only a hint: the state is inspected then. Calls may
   * be repeated or missing. Returns the function that ends it.
   */
  subscribe(listener: (id: string) => void): () => void;

  /** Checks whether it answers. Never fails. */
  check(): Promise<CheckResult>;

  /** Closes its connections and ends executions; sandboxes keep running. Idempotent. */
  close(): Promise<void>;
}
