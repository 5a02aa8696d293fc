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
   * Who has it, for people who look at the runtime itself, and for a sandbox whose record is lost. Left out for a member of a pool, which
   * belongs to nobody yet.
   */
  readonly ownerId?: string;
  /** Passed to the sandbox in the variable that the spec names. */
  readonly sessionApiKey: string;
  /**
   * The values of the spec's secrets, by the variables in which the sandbox's own command gets them at each start. They must not be in
   * anything that the runtime shows, such as a label or the configuration of a container, nor in a reason. Default: none.
   */
  readonly secrets?: Readonly<Record<string, string>>;
}

/** What a runtime kept of a sandbox's launch. Null is not known: the sandbox has no owner yet, or an older version started it. */
export interface KeptLaunch {
  readonly specId: string | null;
  readonly ownerId: string | null;
  /** The variables of the sandbox that a resumption can't change. */
  readonly fixedEnv: Readonly<Record<string, string>>;
}

/** Receives what happens during a start. */
export type Progress = (reason: Reason) => void;

/** `refused`: what the spec needs is not available, and why. */
export type Provision = { readonly kind: 'provided' } | { readonly kind: 'refused'; readonly reason: Reason };

/** Optional abilities of a runtime. It may learn them from its engine only later, so the values may change. */
export interface RuntimeCapabilities {
  /** Holds processes and keeps their memory. */
  readonly freeze: boolean;
}

/** What a sandbox takes now. What is not known, or not taken since it does not run, is null. */
export interface SandboxUsage {
  /** CPU time of its present run, in milliseconds. */
  readonly cpuMs: number | null;
  /** CPU time per time, over the last second or so: 100 is one CPU. */
  readonly cpuPercent: number | null;
  readonly memoryBytes: number | null;
  /** Null if there is no limit, too. */
  readonly memoryLimitBytes: number | null;
  /** Files that it added or changed. */
  readonly diskBytes: number | null;
  /** How many processes and threads it has. */
  readonly pids: number | null;
}

/** What is reported of a sandbox of which nothing is known. */
export const unknownUsage: SandboxUsage = {
  cpuMs: null, cpuPercent: null, memoryBytes: null, memoryLimitBytes: null, diskBytes: null, pids: null,
};

/** What of a sandbox's log is read. */
export interface LogRequest {
  /** Begins so many bytes before the end that the log has at present. Default: with its oldest byte. */
  readonly tailBytes?: number;
  /** Goes on until the present run of the sandbox ends, if it runs or is frozen. Default: ends with what is there. */
  readonly follow?: boolean;
}

/** The parts of a spec that a runtime may ignore. */
export type IgnorableSpecPart = 'image' | 'resources' | 'isolation' | 'labels' | 'runtimeOptions';

/** A command to run in a running sandbox, beside the sandbox's own. */
export interface ExecutionRequest {
  readonly command: readonly string[];
  /** Added to the sandbox's own variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Absolute path inside the sandbox. Default: the spec's working directory. */
  readonly workingDir?: string;
}

/**
 * A command that runs in a sandbox. Output that nobody reads holds the command back; it is never gathered in memory. A stream that is
 * cancelled is drained instead.
 */
export interface Execution {
  /** Closing it closes the command's standard input. */
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** The working directory as the command itself sees it, if that is not the requested path: without isolation it is one of the host's. */
  readonly workingDir?: string;
  /**
   * The exit code, once the command has ended; 128 and the signal's number if a signal ended it. Null if it can't be known: the sandbox
   * or its runtime went away. Never rejects. A command that can't be run ends with 126 or 127, and its standard error says why.
   */
  readonly exited: Promise<number | null>;
  /** Ends the command and all that it started, at once. Returns when it has ended. Idempotent. */
  kill(): Promise<void>;
}

/**
 * Runs sandboxes. It is the truth about the state of each, and the sandboxes survive the process that uses it: a runtime object made
 * anew over the same engine or folder finds every sandbox that an earlier one started.
 *
 * Every method but `execute` is idempotent, so that a call whose response was lost can be repeated. The methods that change a sandbox
 * return its state afterwards. What the sandbox itself can't do (its command does not exist, its image is missing) is a state with a
 * `reason`, not a failure. Failures are `runtime_unavailable` and `runtime_timeout`: then the call may or may not have had its effect.
 * Calls for different sandboxes don't wait for one another. Calls for one sandbox may overlap, and leave it in a state that one of them
 * asked for.
 */
export interface SandboxRuntime {
  /** The name by which it is configured: `process`, `docker`. */
  readonly name: string;

  /**
   * The parts of a spec that have no effect here. Any other part takes effect, or the sandbox is refused: `provide` refuses, or the
   * sandbox does not run and its `reason` says why. Of `runtimeOptions` a runtime reads only the part under its own name.
   */
  readonly ignores: readonly IgnorableSpecPart[];

  readonly capabilities: RuntimeCapabilities;

  /** Commands that go on when this process is gone. */
  readonly executions: SandboxExecutions;

  readonly files: SandboxFiles;

  /**
   * Gets what sandboxes of the spec need and this host lacks, for example an image, which may take long. Returns at once if nothing
   * lacks. Calls for the same thing share the work. When `signal` fires, it rejects with the signal's reason.
   */
  provide(spec: SandboxSpec, progress: Progress, signal: AbortSignal): Promise<Provision>;

  /**
   * Makes the sandbox if there is nothing of it, and runs it if it never ran. `running` or `frozen`: nothing happens. `stopped`: nothing
   * happens either, since a start that ended is not tried again. Returns before the sandbox is ready. When `signal` fires, it rejects
   * with the signal's reason, and what is made so far stays to be found.
   */
  start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Promise<ObservedSandbox>;

  /**
   * Holds all processes of a running sandbox; memory and processes are kept. A sandbox in any other state is left as it is, and so is
   * every sandbox without the capability `freeze`.
   *
   * Processes that keep starting others can't always be held at once. A runtime that gives up lets all of them go on and throws
   * `runtime_unavailable` with the reason `freeze_refused`: the caller may call again, at a time of its own choice. A runtime whose
   * sandboxes can't be frozen at all says so by its capability instead.
   */
  freeze(id: string): Promise<ObservedSandbox>;

  /**
   * Ends all processes of a running or frozen sandbox, asking first. The files in its working directory are kept; those elsewhere may
   * be, as far as the runtime gives a sandbox other places of its own.
   */
  stop(id: string): Promise<ObservedSandbox>;

  /** Lets a frozen sandbox go on; runs a stopped one again over its files. An absent one stays absent. */
  resume(launch: SandboxLaunch, signal: AbortSignal): Promise<ObservedSandbox>;

  /** Ends all processes and removes the files. */
  remove(id: string): Promise<void>;

  inspect(id: string): Promise<ObservedSandbox>;

  /** Returns every sandbox of this deployment that the runtime has anything of. */
  list(): Promise<readonly ObservedSandbox[]>;

  /** Returns what is kept of the launch of a sandbox, for one whose record is lost. Null if there is no such sandbox. */
  keptLaunch(id: string): Promise<KeptLaunch | null>;

  /**
   * Runs a command in a running sandbox, as the user that the sandbox's own command runs as. Returns when it has begun. Further
   * failures: `sandbox_not_found`, `sandbox_not_running`. If `signal` fires before it has begun, it rejects with the signal's reason
   * and nothing goes on running. Freezing the sandbox holds the command, and stopping the sandbox ends it.
   */
  execute(id: string, request: ExecutionRequest, signal: AbortSignal): Promise<Execution>;

  /**
   * Unpacks a tar below a directory inside the sandbox, which is made if it is not there. What is there already stays, or is replaced
   * file by file. Modes and times are kept; everything belongs to the user that the sandbox's programs run as. Symbolic links are
   * content, wherever they point, and are never followed while unpacking: an entry whose name leads out of the directory, by itself or
   * through a link, is refused. The sandbox may run, be frozen or be stopped. The archive is read as it is written, never gathered.
   * Further failures: `sandbox_not_found`, `invalid_request` (the path, or a refused archive, part of which may have been unpacked).
   */
  putFiles(id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void>;

  /**
   * Returns a tar of the file or directory inside the sandbox; names begin with the last segment of its path. Links are content. Further
   * failures: `sandbox_not_found`, `file_not_found`, `invalid_request` (the path). Cancelling the stream ends the work.
   */
  getFiles(id: string, path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;

  /**
   * Returns the log of the sandbox: what its own command wrote to its standard output and error, in the order in which it came, of all its
   * runs. A runtime may keep a bounded part of it only; then its oldest bytes are missing. The sandbox may run, be frozen or be stopped,
   * and stays so. Output that nobody reads holds no command back. Nothing is redacted. Further failures: `sandbox_not_found`. When `signal`
   * fires, the call or the stream fails with the signal's reason. Cancelling the stream ends the work.
   */
  logs(id: string, request: LogRequest, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;

  /** Returns what the sandbox takes now. May take seconds if it has many files. */
  usage(id: string): Promise<SandboxUsage>;

  /** Returns the space of the disk that sandboxes are on. Null if it can't be known, for example because the disk is another machine's. */
  diskSpace(): Promise<DiskSpace | null>;

  /**
   * Calls the listener when something may have happened to a sandbox without being asked for. The listener reads the state again. Events
   * may repeat, and may be missed. Returns the function that ends the subscription.
   */
  subscribe(listener: (id: string) => void): () => void;

  /** One line for a person: whether it can be used. Never fails. */
  check(): Promise<CheckResult>;

  /** Closes its connections and ends executions; sandboxes keep running. Idempotent. */
  close(): Promise<void>;
}
