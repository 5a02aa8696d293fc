import { Failure } from '../../domain/failure.ts';
import type { ObservedSandbox } from '../../domain/sandbox.ts';
import type { ExecutionStart, TerminalSize } from '../../ports/sandbox-executions.ts';
import type { Execution } from '../../ports/sandbox-runtime.ts';
import type { ExecutionPlace } from './execution-supervisor.ts';

/** Returns the command that watches over another one, see `supervisorCommand`. */
export type Supervise = (place: ExecutionPlace) => readonly string[];

/** A command that a host runs for this process. */
export interface HostExecution extends Execution {
  /** Lets it go on when this process ends. */
  outlive(): void;
}

export interface TerminalExecution extends Execution {
  resize(size: TerminalSize): Promise<void>;
}

/** A file of what is kept of an execution. Its content is read before the next file is asked for. */
export interface KeptFile {
  readonly name: string;
  readonly size: number;
  readonly content: AsyncIterable<Uint8Array>;
}

/** What a runtime does for durable executions. Failures: `sandbox_not_found`, and those of its engine. */
export interface ExecutionHost {
  /** The state of the sandbox, and a word that differs for each of its runs. */
  observe(sandboxId: string): Promise<{ readonly state: ObservedSandbox['state']; readonly run: string }>;
  /** The folder of all executions of the sandbox, as scripts know it. */
  folder(sandboxId: string): string;
  /** What is in the environment of all that an execution starts, and of nothing else. */
  mark(sandboxId: string, executionId: string): string;
  /** Runs the supervisor as the sandbox's user. Further failures: `sandbox_not_running`, `invalid_request` (the working directory). */
  launch(sandboxId: string, start: ExecutionStart, supervise: Supervise, signal: AbortSignal): Promise<HostExecution>;
  /** Runs the command attached, in a terminal of the host's own. Null if the host has none. */
  readonly launchTerminal: ((sandboxId: string, start: ExecutionStart, signal: AbortSignal) => Promise<TerminalExecution>) | null;
  /** Runs a script of Skep's own. Further failures: `sandbox_not_running`, if nothing can be run there now. */
  run(sandboxId: string, command: readonly string[], signal: AbortSignal): Promise<HostExecution>;
  /** Reads the files that are kept of an execution, in the order of their names, also where `run` can't. None if there is none. */
  keptFiles(sandboxId: string, executionId: string, signal: AbortSignal): AsyncIterable<KeptFile>;
  /** Ends all processes of the execution, and removes its folder, as far as that can be done. Idempotent. */
  remove(sandboxId: string, executionId: string): Promise<void>;
}

export function executionNotFound(id: string): Failure<'execution_not_found'> {
  return new Failure('execution_not_found', { id });
}
