import { Failure } from '../../domain/failure.ts';
import type { ObservedState } from '../../domain/sandbox.ts';
import type { ExecutionStart, TerminalSize } from '../../ports/sandbox-executions.ts';
import type { Execution } from '../../ports/sandbox-runtime.ts';
import type { SupervisorContext } from './supervisor-script.ts';

/** Returns the command of the supervisor, see `supervisorCommand`. */
export type Supervise = (context: SupervisorContext) => readonly string[];

/**
 * A command or script that a runtime runs. After the exit codes null, 126 and those above 128, the state is read from the sandbox, because
 * the connection may have broken.
 */
export interface HostExecution extends Execution {
  /** Lets the command continue when this process ends. */
  outlive(): void;
  /** Changes the size of its terminal. Absent if it is not in a terminal of the host. */
  resize?(size: TerminalSize): Promise<void>;
}

/** A file that a sandbox keeps of an execution. Its content must be read before the next file. */
export interface KeptFile {
  /** Its name in the execution's folder `kept`: `begun`, `out.<offset>`. */
  readonly name: string;
  readonly size: number;
  readonly content: AsyncIterable<Uint8Array>;
}

export interface ScriptOptions {
  /** The execution that the script belongs to. It may outlive the server, and the next one must not end it as left over. */
  readonly executionId?: string;
  /** It gets no input and does not wait. */
  readonly isShort?: boolean;
}

/** The runtime's part of durable executions. Failures: `sandbox_not_found`, and those of its engine. */
export interface ExecutionHost {
  /** Returns the state of the sandbox, and an id of its current run: from its last start to its end. */
  observe(sandboxId: string): Promise<{ readonly state: ObservedState; readonly runId: string }>;
  /** The folder of all executions of the sandbox, as its scripts see it. */
  folder(sandboxId: string): string;
  /**
   * `NAME=value`, which is in the environment of all processes of an execution, and of no other process. `launch` sets it. It must not be
   * the beginning of another mark, so end it with a character that no id has.
   */
  mark(sandboxId: string, executionId: string): string;
  /** Runs the supervisor as the sandbox's user. Further failures: `sandbox_not_running`, `invalid_request` (the working directory). */
  launch(sandboxId: string, start: ExecutionStart, supervise: Supervise, signal: AbortSignal): Promise<HostExecution>;
  /** Runs the command attached, in a terminal of the host. Absent if the host has none. */
  launchTerminal?(sandboxId: string, start: ExecutionStart, signal: AbortSignal): Promise<HostExecution>;
  /**
   * Runs one of Skep's scripts. Its standard error is not read. Its exit code is null if it is not known, for example because the sandbox
   * has stopped meanwhile. Further failures: `sandbox_not_running`, if the sandbox can't run anything now.
   */
  run(sandboxId: string, command: readonly string[], signal: AbortSignal, how?: ScriptOptions): Promise<HostExecution>;
  /**
   * Reads the kept files of an execution, sorted by name, also if `run` can't work. Yields nothing if there are none, and if scripts can
   * read all files although the sandbox does not run.
   */
  keptFiles(sandboxId: string, executionId: string, signal: AbortSignal): AsyncIterable<KeptFile>;
  /**
   * Kills all processes of the execution and removes its folder. If that is not possible now, writes an empty file `removed` into its
   * folder `kept`. It hides the execution until the sandbox runs again and the rest can be removed. Idempotent.
   */
  remove(sandboxId: string, executionId: string): Promise<void>;
}

export function executionNotFound(id: string): Failure<'execution_not_found'> {
  return new Failure('execution_not_found', { id });
}
