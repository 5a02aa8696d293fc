import type { DiskSpace } from '../domain/disk-pressure.ts';
import type { Reason } from '../domain/reason.ts';
import type { ObservedSandbox } from '../domain/sandbox.ts';
import type { SandboxSpec } from '../domain/sandbox-spec.ts';
import type { CheckResult } from './check-result.ts';
import type { SandboxExecutions } from './sandbox-executions.ts';
import type { SandboxFiles } from './sandbox-files.ts';

/** What a runtime needs to start a sandbox. */
export interface SandboxLaunch {
  /** The name of the sandbox in the runtime: a DNS label. */
  readonly id: string;
  readonly spec: SandboxSpec;
  /**
   * The owner. The runtime keeps it for people who look there, and for a sandbox whose record is lost. Absent for a pool member, which has
   * no owner yet.
   */
  readonly ownerId?: string;
  /** Passed to the sandbox in the variable that the spec names. */
  readonly sessionApiKey: string;
  /**
   * The values of the spec's secrets, by the names of the variables that the sandbox's command gets at each start. Nothing that the runtime
   * shows (labels, the configuration of a container) and no reason may contain them. Default: none.
   */
  readonly secrets?: Readonly<Record<string, string>>;
}

/** The parts of a launch that a runtime keeps. Null if unknown: the sandbox has no owner yet, or an older version started it. */
export interface KeptLaunch {
  readonly specId: string | null;
  readonly ownerId: string | null;
  /** The environment variables that a resumption can't change. Empty if it can change all of them. */
  readonly fixedEnv: Readonly<Record<string, string>>;
}

export type Progress = (reason: Reason) => void;

/** `refused`: something that the spec needs is not available; `reason` says why. */
export type Provision = { readonly kind: 'provided' } | { readonly kind: 'refused'; readonly reason: Reason };

/** Optional features of a runtime. It may learn them from its engine later, so the values can change. */
export interface RuntimeCapabilities {
  /** Can suspend processes and keep their memory. */
  readonly freeze: boolean;
}

/** The resources that a sandbox uses now. A value is null if it is unknown, or if the sandbox does not run. */
export interface SandboxUsage {
  /** CPU time of its current run, in milliseconds. */
  readonly cpuMs: number | null;
  /** CPU use over about the last second: 100 is one CPU. */
  readonly cpuPercent: number | null;
  readonly memoryBytes: number | null;
  /** Also null if there is no limit. */
  readonly memoryLimitBytes: number | null;
  /** Size of the files that it added or changed. */
  readonly diskBytes: number | null;
  /** How many processes and threads it has. */
  readonly pids: number | null;
}

/** The usage of a sandbox about which nothing is known. */
export const unknownUsage: SandboxUsage = {
  cpuMs: null, cpuPercent: null, memoryBytes: null, memoryLimitBytes: null, diskBytes: null, pids: null,
};

/** The part of a sandbox's log to read. */
export interface LogRequest {
  /** Begins this many bytes before the current end of the log. Default: at its oldest byte. */
  readonly tailBytes?: number;
  /** Waits for new output until the current run ends, if the sandbox runs or is frozen. Default: ends at the current end. */
  readonly follow?: boolean;
}

/** The parts of a spec that a runtime may ignore. */
export type IgnorableSpecPart = 'image' | 'resources' | 'isolation' | 'labels' | 'runtimeOptions';

/** An additional command to run in a running sandbox. */
export interface ExecutionRequest {
  /** The program and its arguments. If it is empty, or has a NUL, it can't be run. */
  readonly command: readonly string[];
  /** Added to the sandbox's own variables: those of its own command, without the secrets. */
  readonly env?: Readonly<Record<string, string>>;
  /** Absolute path inside the sandbox. Default: the spec's working directory. */
  readonly workingDir?: string;
}

/**
 * A command that runs in a sandbox. If nobody reads its output, it blocks; output is never collected in memory. A cancelled stream is
 * drained instead.
 */
export interface Execution {
  /** Closing it closes the command's standard input. */
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** The working directory that the command sees, if it differs from the requested path: without isolation it is a path of the host. */
  readonly workingDir?: string;
  /**
   * Resolves to the exit code when the command has ended: 128 plus the signal number if a signal ended it, null if the sandbox or its
   * runtime is gone. Never rejects. If the command can't be run, the exit code is 126 or 127, and standard error says why.
   */
  readonly exited: Promise<number | null>;
  /** Kills the command and all processes that it started. Returns when it has ended. Idempotent. */
  kill(): Promise<void>;
}

/**
 * Runs sandboxes. Only the runtime knows their real state. Sandboxes survive this process: a new runtime object for the same engine or
 * folder finds every sandbox that an earlier one started.
 *
 * Every method except `execute` is idempotent, so a call can be repeated if its response was lost. Methods that change a sandbox return its
 * new state. A problem of the sandbox itself (its command does not exist, its image is missing) is a state with a `reason`, not a failure.
 * Failures: `runtime_unavailable` and `runtime_timeout`; the call may have had its effect or not. Calls for different sandboxes don't wait
 * for each other. Calls for one sandbox may overlap; it ends in a state that one of them requested.
 */
export interface SandboxRuntime {
  /** The name by which it is configured: `process`, `docker`. */
  readonly name: string;

  /**
   * The parts of a spec that have no effect here. Every other part takes effect, or the start fails: `provide` refuses, or the sandbox does
   * not run and its `reason` says why. A runtime reads only the part of `runtimeOptions` under its own name.
   */
  readonly ignores: readonly IgnorableSpecPart[];

  /** The least memory that a sandbox can have, in bytes. A start that asks for less is refused. Default: no minimum. */
  readonly minMemoryBytes?: number;

  readonly capabilities: RuntimeCapabilities;

  /** Commands that survive this process. */
  readonly executions: SandboxExecutions;

  readonly files: SandboxFiles;

  /**
   * Fetches what sandboxes of the spec need and this host does not have, for example an image. This may take long. Returns at once if
   * nothing is missing. Calls for the same thing share the work. Rejects with the signal's reason if `signal` fires.
   */
  provide(spec: SandboxSpec, progress: Progress, signal: AbortSignal): Promise<Provision>;

  /**
   * Creates the sandbox if it is `absent`, and runs it if it never ran. Does nothing if it is `running`, `frozen` or `stopped`: a start
   * that ended is not tried again. Returns before the sandbox is ready. If `signal` fires, rejects with the signal's reason; what was
   * created until then remains.
   */
  start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<ObservedSandbox>;

  /**
   * Suspends all processes of a running sandbox and keeps their memory. Does nothing in any other state, or without the capability
   * `freeze`.
   *
   * Processes that keep starting others can't always be suspended together. If the runtime gives up, it lets all of them continue and
   * throws `runtime_unavailable` with the reason `freeze_refused`; the caller may try again later. A runtime that can't freeze any sandbox
   * does not have the capability.
   */
  freeze(id: string): Promise<ObservedSandbox>;

  /**
   * Ends all processes of a running or frozen sandbox: asks them first, then kills them. Keeps the files in the working directory. Keeps
   * other files only if the runtime stores them separately for each sandbox.
   */
  stop(id: string): Promise<ObservedSandbox>;

  /** Continues a frozen sandbox; runs a stopped one again with its files. An absent one stays absent. */
  resume(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox>;

  /** Ends all processes and removes the files. */
  remove(id: string): Promise<void>;

  inspect(id: string): Promise<ObservedSandbox>;

  /** Returns every sandbox of this deployment that is not `absent`. */
  list(): Promise<readonly ObservedSandbox[]>;

  /** Returns the kept parts of a sandbox's launch, in case its record is lost. Null if there is no such sandbox. */
  keptLaunch(id: string): Promise<KeptLaunch | null>;

  /**
   * Runs a command in a running sandbox, as the same user as the sandbox's own command. Returns when it has begun. Further failures:
   * `sandbox_not_found`, `sandbox_not_running`, `invalid_request` (the working directory is not absolute). If `signal` fires before that,
   * rejects with the signal's reason and nothing keeps running. Freezing the sandbox suspends the command, and stopping the sandbox ends
   * it.
   */
  execute(id: string, request: ExecutionRequest, signal: AbortSignal): Promise<Execution>;

  /**
   * Unpacks a tar into a directory inside the sandbox, and creates the directory if it is missing. Files of the archive replace existing
   * ones; other files stay. Modes and times are kept; the owner is the user that the sandbox's programs run as. Symbolic links are unpacked
   * as links, wherever they point, and are never followed: an entry whose name leads out of the directory, directly or through a link, is
   * refused, and so is a directory where a link is. The sandbox may be running, frozen or stopped. The archive is streamed, never collected
   * in memory. Further failures: `sandbox_not_found`, `invalid_request` (the path is not absolute or has `..`, or a refused archive, part
   * of which may have been unpacked).
   */
  putFiles(id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void>;

  /**
   * Returns a tar of the file or directory inside the sandbox. Its names begin with the last segment of the path. Links are packed as
   * links. Further failures: `sandbox_not_found`, `file_not_found`, `invalid_request` (the path). Cancelling the stream ends the work.
   */
  getFiles(id: string, path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;

  /**
   * Returns the log of the sandbox: the standard output and error of its own command, in order, of all its runs. A runtime may keep only a
   * part of bounded size, without the oldest bytes. The sandbox may be running, frozen or stopped; its state does not change. A slow reader
   * does not block the command. Nothing is redacted. Further failures: `sandbox_not_found`. If `signal` fires, the call or the stream fails
   * with the signal's reason. Cancelling the stream ends the work.
   */
  logs(id: string, request: LogRequest, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;

  /** Returns the resources that the sandbox uses now. Nothing is known about an absent one. May take seconds if it has many files. */
  usage(id: string): Promise<SandboxUsage>;

  /** Returns the space of the disk that holds the sandboxes. Null if unknown, for example because the disk is on another machine. */
  diskSpace(): Promise<DiskSpace | null>;

  /**
   * Calls the listener when the state of a sandbox may have changed without a call. The listener reads the state again. Events may repeat
   * or be missed, but a sandbox to which nothing happens has none. Returns the function that ends the subscription.
   */
  subscribe(listener: (id: string) => void): () => void;

  /** Checks whether it can be used. Never fails. */
  check(): Promise<CheckResult>;

  /** Closes its connections and ends executions; sandboxes keep running. Idempotent. */
  close(): Promise<void>;
}
