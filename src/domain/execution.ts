import type { None, Reason } from './reason.ts';

export const executionRecordStatuses = ['running', 'exited', 'lost'] as const;

/** `lost`: its sandbox was stopped or disappeared before it ended, or its end is unknown. */
type ExecutionRecordStatus = (typeof executionRecordStatuses)[number];

/** An execution belongs to its sandbox's owner. The sandbox holds its output and input. Times are in milliseconds since the epoch. */
export interface ExecutionRecord {
  readonly id: string;
  readonly sandboxId: string;
  readonly command: readonly string[];
  readonly stdin: boolean;
  readonly tty: boolean;
  readonly status: ExecutionRecordStatus;
  /** The record is written before the command is started. True once the runtime has reported that it began. */
  readonly begun: boolean;
  /** 128 plus the signal number if a signal ended it. Null unless it has exited. */
  readonly exitCode: number | null;
  readonly durable: boolean;
  /** How many bytes it has written, as last reported by the runtime. */
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  /** Why it is not durable, was ended, or is lost. */
  readonly statusReason: Reason | null;
  readonly startedAt: number;
  /** When it is ended with SIGKILL if it still runs. Null: never. */
  readonly deadline: number | null;
  readonly endedAt: number | null;
  /** Every write raises it by one. */
  readonly version: number;
  /** When it was deleted. No caller sees it from then on. */
  readonly deletedAt: number | null;
  /** When everything of it was removed from the runtime. */
  readonly removedAt: number | null;
}

interface NewExecution extends Pick<ExecutionRecord, 'id' | 'sandboxId' | 'command' | 'stdin' | 'tty'> {
  readonly timeoutMs: number | null;
  readonly now: number;
}

export function newExecution({ timeoutMs, now, ...given }: NewExecution): ExecutionRecord {
  return {
    ...given, status: 'running', begun: false, exitCode: null, durable: false, stdoutBytes: 0, stderrBytes: 0, statusReason: null,
    startedAt: now, deadline: timeoutMs === null ? null : now + timeoutMs, endedAt: null, version: 1, deletedAt: null, removedAt: null,
  };
}

/** The kept bytes of an output, as offsets from `oldest` to `end`. `end` is how many bytes the command has written. */
export interface KeptOutput {
  readonly oldest: number;
  readonly end: number;
}

/** An execution as its runtime reports it. */
export interface ExecutionState {
  readonly status: ExecutionRecordStatus;
  /** 128 plus the signal number if a signal ended it. Null unless it has exited. */
  readonly exitCode: number | null;
  /** True if it continues, and its output is kept, after the process that started it has ended. */
  readonly durable: boolean;
  readonly stdout: KeptOutput;
  readonly stderr: KeptOutput;
  /** Why it is not durable, or why it is lost. Null if it could not be run, which its exit code and standard error say. */
  readonly reason: Reason | null;
}

export const sigkillExitCode = 128 + 9;

/** Returns the record with the state that the runtime reports. The record of an ended execution does not change. */
export function observeExecution(record: ExecutionRecord, observed: ExecutionState, now: number): ExecutionRecord {
  if (record.status !== 'running') return record;
  const { status, exitCode, durable, stdout, stderr, reason } = observed;
  // The time limit explains more than the kill. If the command ended by itself at the last moment, the time limit is not the reason.
  const wasEnded = record.statusReason?.code === 'execution_timed_out' && (status === 'running' || exitCode === sigkillExitCode);
  return {
    ...record, status, begun: true, exitCode, durable, stdoutBytes: stdout.end, stderrBytes: stderr.end,
    statusReason: wasEnded ? record.statusReason : reason, endedAt: status === 'running' ? null : now,
  };
}

/** Returns the record of a running execution that is lost. The record of an ended execution does not change. */
export function loseExecution(record: ExecutionRecord, statusReason: Reason, now: number): ExecutionRecord {
  if (record.status !== 'running') return record;
  return { ...record, status: 'lost', statusReason, endedAt: now };
}

/** Returns the record of a running execution whose time is over. The record of an ended execution does not change. */
export function timeOutExecution(record: ExecutionRecord): ExecutionRecord {
  if (record.status !== 'running') return record;
  const { deadline, startedAt } = record;
  const statusReason = { code: 'execution_timed_out', afterMs: (deadline ?? startedAt) - startedAt } as const;
  return { ...record, statusReason };
}

/** Returns true if a sweep must handle it: it runs, or it is deleted but may not be removed yet. */
export function isExecutionUnsettled({ status, deletedAt, removedAt }: ExecutionRecord): boolean {
  return deletedAt === null ? status === 'running' : removedAt === null;
}

/** How many executions may run at once; null is no limit. */
export interface ExecutionLimits {
  readonly executionsPerSandbox: number | null;
}

export const defaultExecutionLimits: ExecutionLimits = { executionsPerSandbox: 100 };

/** How many ended executions a sandbox keeps. Older ones are deleted. */
export const maxEndedExecutions = 100;

export function hasMoreOutput(now: ExecutionRecord, before: ExecutionRecord): boolean {
  return now.stdoutBytes > before.stdoutBytes || now.stderrBytes > before.stderrBytes;
}

/** The reasons of executions, with their data. Times are in milliseconds. */
export interface ExecutionReasonData {
  execution_timed_out: { readonly afterMs: number };
  execution_not_started: None;
  execution_vanished: None;
  execution_sandbox_ended: None;
  execution_end_unknown: None;
  /** The execution is not durable. */
  execution_attached: None;
  /** The same, because the sandbox does not have these programs or other tools. */
  execution_tools_missing: { readonly tools: readonly string[] };
  terminal_unsupported: None;
}
