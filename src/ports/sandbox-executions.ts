import type { ExecutionState } from '../domain/execution.ts';
import type { Execution, ExecutionRequest } from './sandbox-runtime.ts';

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/** A command to start in a sandbox, under an id that the caller chooses. */
export interface ExecutionStart extends ExecutionRequest {
  /** A DNS label, unique in the sandbox. */
  readonly executionId: string;
  /** True if its standard input stays open for `write`. Otherwise it is empty. */
  readonly stdin: boolean;
  /** Runs it in a terminal of this size. Then all its output is `stdout`, and `stderr` stays empty. */
  readonly tty: TerminalSize | null;
}

/** A command whose streams are held by one process at a time. */
export type OpenExecutionStart = Omit<ExecutionStart, 'stdin' | 'tty'>;

/** Positions in the streams: how many bytes of input and output come before. */
export interface StreamOffsets {
  readonly stdin: number;
  readonly stdout: number;
}

/**
 * A command whose streams this process holds. It blocks while nobody reads its output. If it is durable, it continues when this process
 * ends. `kill` also removes its kept data.
 */
export interface OpenExecution extends Execution {
  /** True if another process can reopen it. Otherwise it ends with this process. */
  readonly durable: boolean;
  /** How many bytes of input earlier processes have written, and whether they end in the middle of a line. */
  readonly handedOver: { readonly bytes: number; readonly isCut: boolean };
  /** Removes the kept bytes before the offsets, and all of its standard error. Only if it is durable. */
  forgetBefore(offsets: StreamOffsets): Promise<void>;
  /** Stops reading and waiting. A durable command continues. */
  leave(): void;
}

export type OutputStream = 'stdout' | 'stderr';

export interface OutputRequest {
  readonly stream: OutputStream;
  /** Where to begin: how many bytes the reader already has. */
  readonly after: number;
  /** True: continue until the command has ended. */
  readonly follow: boolean;
  /**
   * True: the command waits while this reader is behind, as for the reader of a pipe. Only with `follow`, and only in the process that
   * started the command. Default: a slow reader does not block the command.
   */
  readonly hold?: boolean;
}

/**
 * Commands in sandboxes that survive the process that started them. Every method takes ids, so any process with the same engine or folder
 * can continue the work of another. At least the last 64 MiB of each output stream are kept in the sandbox. Older bytes may be dropped; the
 * command does not block. If the sandbox does not have the tools or the disk space for this, the command runs with `durable: false`: it
 * ends with the process that started it, which keeps less of its output.
 *
 * Failures of all methods: `sandbox_not_found`, `execution_not_found`, `runtime_unavailable`, `runtime_timeout`. No method wakes a sandbox
 * or changes its state. A start and a freeze never overlap in one sandbox.
 */
export interface SandboxExecutions {
  /**
   * Starts the command. Returns when it has begun. A terminal that the runtime does not have is refused with `invalid_request`
   * (`terminal_unsupported`). Does nothing if the id was started before, so a call can be repeated if its response was
   * lost. If the command can't be run, it exits with 126 or 127, and its standard error says why. If the sandbox has no room for its
   * processes, it does not run: `runtime_unavailable` with the reason `process_limit_reached`. The caller of a first start then has to
   * remove what is left of it. With the reason `command_not_begun`, it does not run either, and nothing is left of it. Further failures:
   * `sandbox_not_running`, `invalid_request` (the working directory).
   */
  start(sandboxId: string, start: ExecutionStart, signal: AbortSignal): Promise<ExecutionState>;

  /** Returns its state, also while its sandbox is frozen or stopped. */
  state(sandboxId: string, executionId: string): Promise<ExecutionState>;

  /** Resolves when it has ended. Rejects with the signal's reason if the signal fires first. A frozen command does not end. */
  ended(sandboxId: string, executionId: string, signal: AbortSignal): Promise<ExecutionState>;

  /**
   * Returns the output from the offset `after` on: the kept bytes, or with `follow` all until the command has ended. The stream fails with
   * `output_dropped {oldest}`, also in the middle, if the next byte is not kept any more. If the offset is beyond the end, the stream waits
   * (`follow`) or is empty.
   */
  output(
    sandboxId: string, executionId: string, request: OutputRequest, signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>>;

  /**
   * Writes to the standard input, and closes it afterwards if `close` is true. Returns when everything is written; this waits while the
   * command does not read. Further failures: `sandbox_not_running` (also if frozen), `input_closed` (it has ended, or its standard input is
   * absent or closed).
   */
  write(sandboxId: string, executionId: string, content: ReadableStream<Uint8Array>, close: boolean, signal: AbortSignal): Promise<void>;

  /**
   * Sends a signal (`SIGINT`) to the command's process group. Any signal kills a command that is not durable, which ends with 137. Does
   * nothing if the command has ended. Further failures: `sandbox_not_running`, `invalid_request` (no such signal).
   */
  signal(sandboxId: string, executionId: string, signalName: string): Promise<void>;

  /** Changes the size of its terminal. Does nothing if it has no terminal, or has ended. Further failures: `sandbox_not_running`. */
  resize(sandboxId: string, executionId: string, size: TerminalSize): Promise<void>;

  /**
   * Ends the command and all processes that it started, and removes its kept data. Idempotent. In a frozen or stopped sandbox it does what
   * is possible, and the rest when the sandbox runs again.
   */
  remove(sandboxId: string, executionId: string): Promise<void>;

  /**
   * Starts a command whose streams the caller holds. Removes an earlier command with the same id. Only the command itself gets its
   * environment. Further failures: `sandbox_not_running`, `invalid_request` (the working directory).
   */
  open(sandboxId: string, start: OpenExecutionStart, signal: AbortSignal): Promise<OpenExecution>;

  /**
   * Takes over a command from a process that is gone. Its output is read from the offset `after` on, and fails with `output_dropped` if
   * that byte is not kept any more. Its input continues where it ended. A command that has ended takes no input, and is read to its end.
   * Further failures: `sandbox_not_running`.
   */
  reopen(sandboxId: string, executionId: string, after: number, signal: AbortSignal): Promise<OpenExecution>;
}
