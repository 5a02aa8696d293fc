import type { Reason } from '../domain/reason.ts';
import type { Execution, ExecutionRequest } from './sandbox-runtime.ts';

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/** A command to start in a sandbox, under an id that the caller chooses. */
export interface ExecutionStart extends ExecutionRequest {
  /** A DNS label, unique in the sandbox. */
  readonly executionId: string;
  /** Whether its standard input stays open for `write`. Otherwise it is empty. */
  readonly stdin: boolean;
  /** Runs it in a terminal of this size. What it shows is its `stdout` then, and `stderr` stays empty. */
  readonly tty: TerminalSize | null;
}

/** A command whose streams one process at a time has in hand. */
export type OpenExecutionStart = Omit<ExecutionStart, 'stdin' | 'tty'>;

/** What of it is read or written next: how many bytes of its input and its output came before. */
export interface StreamOffsets {
  readonly stdin: number;
  readonly stdout: number;
}

/**
 * A command as the process has it that holds its streams. It is held back while nobody reads its output. It goes on when this process ends.
 * `kill` also removes what is kept of it.
 */
export interface OpenExecution extends Execution {
  /** Whether it can be opened again. Otherwise it ends with this process. */
  readonly durable: boolean;
  /** How much of its input earlier processes have handed over, and whether that ends within a line. */
  readonly handedOver: { readonly bytes: number; readonly isCut: boolean };
  /** Removes what is kept of its streams before the offsets, and all that it wrote to its standard error. Only if it is durable. */
  forgetBefore(offsets: StreamOffsets): Promise<void>;
  /** Lets go of it: nothing more is read or waited for, and a durable one goes on. */
  leave(): void;
}

export type OutputStream = 'stdout' | 'stderr';

export interface OutputRequest {
  readonly stream: OutputStream;
  /** Where to begin: how many bytes the reader has. */
  readonly after: number;
  /** Go on until the command has ended. */
  readonly follow: boolean;
}

/** The bytes of an output that are kept: from `oldest` on, up to `end`, which is how many the command has written. */
export interface KeptOutput {
  readonly oldest: number;
  readonly end: number;
}

/** `lost`: its sandbox was stopped or went away before it ended, or nobody knows how it ended. */
export interface ExecutionState {
  readonly status: 'running' | 'exited' | 'lost';
  /** 128 and the signal's number if a signal ended it. Null unless it has exited. */
  readonly exitCode: number | null;
  /** Whether it goes on, and its output is kept, when the process that started it is gone. */
  readonly durable: boolean;
  readonly stdout: KeptOutput;
  readonly stderr: KeptOutput;
  /** Why it is not durable, or lost. */
  readonly reason: Reason | null;
}

/**
 * Commands in sandboxes that outlive the process that started them. Every method takes ids, so any process that uses the same engine or
 * folder continues where another stopped. Output is kept in the sandbox, up to a bound for each stream: the oldest is dropped then, and
 * the command is never held back by it. Where the sandbox lacks what that needs, the command runs as well, `durable: false`: it ends with
 * the process that started it.
 *
 * Failures of all methods: `sandbox_not_found`, `execution_not_found`, `runtime_unavailable`, `runtime_timeout`. Nothing here wakes a
 * sandbox or changes its state. Starting and freezing never overlap in one sandbox.
 */
export interface SandboxExecutions {
  /**
   * Starts the command. Returns when it has begun. Started again under its id, nothing happens, so that a call whose response was lost can
   * be repeated. A command that can't be run exits with 126 or 127, and its standard error says why. Further failures:
   * `sandbox_not_running`, `invalid_request` (the working directory).
   */
  start(sandboxId: string, start: ExecutionStart, signal: AbortSignal): Promise<ExecutionState>;

  /** Returns its state, also while its sandbox is frozen or stopped. */
  state(sandboxId: string, executionId: string): Promise<ExecutionState>;

  /** Resolves when it has ended. Rejects with the signal's reason if that fires first. A frozen command does not end. */
  ended(sandboxId: string, executionId: string, signal: AbortSignal): Promise<ExecutionState>;

  /**
   * Returns the bytes of an output from the offset `after` on: what is kept, or with `follow` until the command has ended and all is read.
   * A slow reader does not hold the command back. The stream fails with `output_dropped {oldest}` if the next byte is not kept any more,
   * also in the middle. An offset beyond the end waits (`follow`) or is empty.
   */
  output(
    sandboxId: string, executionId: string, request: OutputRequest, signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>>;

  /**
   * Writes to the standard input, and closes it afterwards if asked to. Returns when all is handed over, which waits while the command
   * does not read. Further failures: `sandbox_not_running` (also a frozen one), `input_closed` (it has ended, has no standard input, or
   * that is closed).
   */
  write(sandboxId: string, executionId: string, content: ReadableStream<Uint8Array>, close: boolean, signal: AbortSignal): Promise<void>;

  /**
   * Sends a signal (`SIGINT`) to the command's process group. Nothing happens if the command has ended. Further failures:
   * `sandbox_not_running`, `invalid_request` (no such signal).
   */
  signal(sandboxId: string, executionId: string, signalName: string): Promise<void>;

  /** Changes the size of its terminal. Nothing happens if it has none, or has ended. */
  resize(sandboxId: string, executionId: string, size: TerminalSize): Promise<void>;

  /**
   * Ends the command and all that it started, and removes what is kept of it. Idempotent. In a frozen or stopped sandbox: as far as it
   * can be done, the rest with the sandbox's next run.
   */
  remove(sandboxId: string, executionId: string): Promise<void>;

  /**
   * Starts a command whose streams the caller holds. What ran under its id is removed. Nothing but the command itself gets its environment.
   * Further failures: `sandbox_not_running`, `invalid_request` (the working directory).
   */
  open(sandboxId: string, start: OpenExecutionStart, signal: AbortSignal): Promise<OpenExecution>;

  /**
   * Takes over a command whose process is gone: its output is read from the offset `after` on, which fails with `output_dropped` if that
   * is not kept any more, and its input goes on where it ended. One that has ended takes no input, and is read to its end. Further
   * failures: `sandbox_not_running`.
   */
  reopen(sandboxId: string, executionId: string, after: number, signal: AbortSignal): Promise<OpenExecution>;
}
