import { type ExecutionRecord, maxEndedExecutions, newExecution } from '../../domain/execution.ts';
import { Failure, type FailureCode, isFailure, isFailureOf } from '../../domain/failure.ts';
import type { Caller } from '../../domain/principal.ts';
import type { Reason } from '../../domain/reason.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import type { TerminalSize } from '../../ports/sandbox-executions.ts';
import { unlessRepeated } from '../repeated-request.ts';
import { getSandbox, withRecordFailures } from '../sandboxes/sandbox-records.ts';
import type { ExecutionUseCaseDeps } from './executions.ts';

export interface RunExecutionRequest {
  readonly command: readonly string[];
  /** Added to the sandbox's own variables. Skep does not store them. */
  readonly env: Readonly<Record<string, string>>;
  /** Null: the working directory of the sandbox's spec. */
  readonly workingDir: string | null;
  /** Null: no time limit. */
  readonly timeoutMs: number | null;
  readonly stdin: boolean;
  readonly tty: TerminalSize | null;
  readonly claim?: IdempotencyClaim;
}

/** A guess: there is room again when executions end. */
const limitRetryAfterSeconds = 10;

/**
 * Runs a command in a running sandbox, and returns its record when it has begun. The record is written first, so that no command runs
 * without a record. Counts as activity. Throws `sandbox_not_found`, `sandbox_not_running`, `sandbox_busy`, `execution_limit_reached`,
 * `idempotency_conflict`, `execution_not_found` (the same claim ran it before, and it was deleted), `runtime_unavailable` or
 * `runtime_timeout`. After the last two, the command may run nevertheless, unless the reason is `process_limit_reached` or
 * `command_not_begun`.
 */
export async function runExecution(
  deps: ExecutionUseCaseDeps, caller: Caller | null, sandboxId: string, request: RunExecutionRequest,
): Promise<ExecutionRecord> {
  const { store, limits, clock, random } = deps;
  const { command, stdin, tty, timeoutMs, claim } = request;
  const sandbox = await getSandbox(store, caller, sandboxId);
  const execution = newExecution({
    id: random.id('exec'), sandboxId: sandbox.id, command, stdin, tty: tty !== null, timeoutMs, now: clock.now(),
  });
  const outcome = await unlessRepeated(store.executions, claim, async () => {
    requireRunning(sandbox);
    return await store.executions.insert(execution, limits, claim);
  });
  switch (outcome.kind) {
    case 'inserted':
      return await startNew(deps, sandbox, execution, request);
    case 'repeated':
      return await repeat(deps, sandbox, outcome.id, request);
    case 'conflict':
      throw new Failure('idempotency_conflict', { key: claim?.key ?? '' });
    case 'limit':
      throw new Failure('execution_limit_reached', { ...outcome.reached, retryAfterSeconds: limitRetryAfterSeconds });
  }
}

function requireRunning({ id, status }: Sandbox): void {
  if (status === 'STARTING' || status === 'PAUSING' || status === 'RESUMING') throw new Failure('sandbox_busy', { id, status });
  if (status !== 'RUNNING') throw new Failure('sandbox_not_running', { id, status });
}

/** The failures of a first start, and the reasons of `runtime_unavailable`, after which the command does not run. */
const neverBegun: ReadonlySet<FailureCode | Reason['code']> = new Set([
  'sandbox_not_running', 'invalid_request', 'process_limit_reached', 'command_not_begun',
]);

async function startNew(
  deps: ExecutionUseCaseDeps, sandbox: Sandbox, execution: ExecutionRecord, request: RunExecutionRequest,
): Promise<ExecutionRecord> {
  try {
    return await startOnRuntime(deps, sandbox, execution, request);
  } catch (error) {
    const { store, runtime, reconciler } = deps;
    if (!isFailure(error)) {
      // The start is over, unless this process ends. If the runtime can't say what runs, a sweep asks again.
      if (!reconciler.closing.aborted) await reconciler.refresh(execution, sandbox, false).catch(() => {});
      throw error;
    }
    const code = isFailureOf(error, 'runtime_unavailable') ? error.context.reason.code : error.code;
    // False if a repeated request has started the command meanwhile.
    const isUndone = neverBegun.has(code) && (await store.executions.undoInsert(execution.id));
    // What the start left behind would take up room.
    if (isUndone && code === 'process_limit_reached') await runtime.executions.remove(sandbox.instanceId, execution.id).catch(() => {});
    throw error;
  }
}

/**
 * Returns the execution of the same request. If its start may have failed, starts it again; the start is idempotent. If that fails too,
 * nothing is removed and the record stays, because the first start may have begun the command.
 */
async function repeat(deps: ExecutionUseCaseDeps, sandbox: Sandbox, id: string, request: RunExecutionRequest): Promise<ExecutionRecord> {
  const execution = await deps.store.executions.find(id);
  if (execution === null || execution.deletedAt !== null) throw new Failure('execution_not_found', { id });
  return execution.begun || execution.status !== 'running' ? execution : await startOnRuntime(deps, sandbox, execution, request);
}

async function startOnRuntime(
  deps: ExecutionUseCaseDeps, sandbox: Sandbox, execution: ExecutionRecord, { command, env, workingDir, stdin, tty }: RunExecutionRequest,
): Promise<ExecutionRecord> {
  const { store, runtime, reconciler, clock } = deps;
  const { id } = execution;
  await store.sandboxes.touch(sandbox.id, clock.now());
  const start = { executionId: id, command, env, stdin, tty, ...(workingDir !== null && { workingDir }) };
  const state = await withRecordFailures(sandbox, () => runtime.executions.start(sandbox.instanceId, start, reconciler.closing));
  const begun = await reconciler.recordState(execution, state);
  const isUndone = begun.status === 'running' && !begun.begun;
  if (begun.deletedAt !== null || isUndone) {
    // The removal may have come before the start, or the first request with this claim has failed and undone its insert.
    await runtime.executions.remove(sandbox.instanceId, id);
    throw new Failure('execution_not_found', { id });
  }
  reconciler.enqueue(id);
  await deleteOldest(deps, sandbox.id);
  return begun;
}

/** Deletes the oldest ended executions, beyond the number that is kept. */
async function deleteOldest({ store, reconciler }: ExecutionUseCaseDeps, sandboxId: string): Promise<void> {
  for (const execution of await store.executions.endedBeyondNewest(sandboxId, maxEndedExecutions)) {
    await reconciler.delete(execution);
    reconciler.enqueue(execution.id);
  }
}
