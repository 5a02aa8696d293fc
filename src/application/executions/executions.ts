import type { ExecutionLimits, ExecutionRecord, KeptOutput } from '../../domain/execution.ts';
import { Failure, isFailureOf } from '../../domain/failure.ts';
import { activityIntervalMs } from '../../domain/idle-policy.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { Caller } from '../../domain/principal.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { OutputRequest, OutputStream, TerminalSize } from '../../ports/sandbox-executions.ts';
import type { CoreDeps, Bound } from '../use-cases.ts';
import { getSandbox, withRecordFailures } from '../sandboxes/sandbox-records.ts';
import { waitAtMost } from '../timers.ts';
import type { ExecutionReconciler } from './execution-reconciler.ts';
import { runExecution } from './run-execution.ts';

export interface ExecutionUseCaseDeps extends CoreDeps {
  readonly reconciler: ExecutionReconciler;
  readonly limits: ExecutionLimits;
  /** How long a deletion waits for the runtime, in milliseconds. */
  readonly answerWithinMs: number;
}

interface SandboxExecution {
  readonly sandbox: Sandbox;
  readonly execution: ExecutionRecord;
}

/** Returns the execution. Throws `sandbox_not_found`, or `execution_not_found` if it is not in the sandbox or is deleted. */
async function getSandboxExecution(
  { store }: CoreDeps, caller: Caller | null, sandboxId: string, id: string,
): Promise<SandboxExecution> {
  const sandbox = await getSandbox(store, caller, sandboxId);
  const execution = await store.executions.find(id);
  if (execution?.sandboxId !== sandbox.id || execution.deletedAt !== null) throw new Failure('execution_not_found', { id });
  return { sandbox, execution };
}

/** Returns the executions of the sandbox, newest first. Reads the store only: the sizes of a running execution are the last known ones. */
async function listExecutions(
  { store }: ExecutionUseCaseDeps, caller: Caller | null, sandboxId: string, page: PageRequest,
): Promise<Page<ExecutionRecord>> {
  const { id } = await getSandbox(store, caller, sandboxId);
  return await store.executions.list(id, page);
}

async function getExecution(deps: ExecutionUseCaseDeps, caller: Caller | null, sandboxId: string, id: string): Promise<ExecutionRecord> {
  const { sandbox, execution } = await getSandboxExecution(deps, caller, sandboxId, id);
  return await deps.reconciler.refresh(execution, sandbox);
}

export interface ReadOutputRequest extends Omit<OutputRequest, 'after'> {
  /** The offset to begin at. Null: the oldest kept byte, but for a terminal at most its last 64 KiB. */
  readonly after: number | null;
}

export interface Output {
  /** The offset of the first byte. */
  readonly from: number;
  readonly bytes: ReadableStream<Uint8Array>;
}

/** How much past output of a terminal is returned if no offset is given, in bytes. */
const screenfulBytes = 64 * 1024;

/** Returns the kept part of an output; null if the sandbox has lost all of the execution, for example because a command emptied `/tmp`. */
async function findKeptOutput(
  { runtime }: CoreDeps, { sandbox, execution: { id, begun } }: SandboxExecution, stream: OutputStream,
): Promise<KeptOutput | null> {
  try {
    return (await runtime.executions.state(sandbox.instanceId, id))[stream];
  } catch (error) {
    if (begun && isFailureOf(error, 'execution_not_found')) return null;
    throw error;
  }
}

/** Returns the output of the execution. Throws `output_dropped`; the stream fails so if a reader that does not hold is too slow. */
async function readOutput(
  deps: ExecutionUseCaseDeps, caller: Caller | null, sandboxId: string, id: string, { after, ...request }: ReadOutputRequest,
  signal: AbortSignal,
): Promise<Output> {
  const { runtime } = deps;
  const found = await getSandboxExecution(deps, caller, sandboxId, id);
  const { sandbox, execution } = found;
  const { instanceId } = sandbox;
  return await withRecordFailures(sandbox, async () => {
    const kept = await findKeptOutput(deps, found, request.stream);
    const written = request.stream === 'stdout' ? execution.stdoutBytes : execution.stderrBytes;
    const { oldest, end } = kept ?? { oldest: written, end: written };
    const from = after ?? Math.max(oldest, execution.tty ? end - screenfulBytes : 0);
    if (from < oldest) throw new Failure('output_dropped', { oldest });
    if (kept === null) return { from, bytes: ReadableStream.from([]) };
    return { from, bytes: await runtime.executions.output(instanceId, id, { ...request, after: from }, signal) };
  });
}

/**
 * Writes to the standard input of the execution, and closes it afterwards if `close` is true. Returns when all input is handed over, so it
 * waits while the command does not read. Counts as activity. Throws `input_closed`.
 */
async function writeInput(
  deps: ExecutionUseCaseDeps, caller: Caller | null, sandboxId: string, id: string, content: ReadableStream<Uint8Array>, close: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { store, runtime, clock } = deps;
  const { sandbox, execution } = await getSandboxExecution(deps, caller, sandboxId, id);
  if (execution.status !== 'running' || !execution.stdin) throw new Failure('input_closed', { id });
  let touchedAt = -Infinity;
  const touching = new TransformStream<Uint8Array, Uint8Array>({
    async transform(bytes, controller) {
      const now = clock.now();
      if (now - touchedAt >= activityIntervalMs(sandbox)) {
        touchedAt = now;
        await store.sandboxes.touch(sandbox.id, now);
      }
      controller.enqueue(bytes);
    },
  });
  await withRecordFailures(sandbox, () => runtime.executions.write(sandbox.instanceId, id, content.pipeThrough(touching), close, signal));
}

/** Sends a signal (`SIGINT`) to the process group of the execution. Does nothing if it has ended. */
async function signalExecution(
  deps: ExecutionUseCaseDeps, caller: Caller | null, sandboxId: string, id: string, signalName: string,
): Promise<void> {
  const { sandbox, execution } = await getSandboxExecution(deps, caller, sandboxId, id);
  if (execution.status !== 'running') return;
  await withRecordFailures(sandbox, () => deps.runtime.executions.signal(sandbox.instanceId, id, signalName));
}

/** Changes the size of the execution's terminal. Does nothing if it has no terminal or has ended. */
async function resizeExecution(
  deps: ExecutionUseCaseDeps, caller: Caller | null, sandboxId: string, id: string, size: TerminalSize,
): Promise<void> {
  const { sandbox, execution } = await getSandboxExecution(deps, caller, sandboxId, id);
  if (execution.status !== 'running' || !execution.tty) return;
  await withRecordFailures(sandbox, () => deps.runtime.executions.resize(sandbox.instanceId, id, size));
}

/**
 * Ends the execution with all its processes, and deletes its record and output. Afterwards no caller sees it. If the runtime does not
 * answer, it is removed there later. Idempotent.
 */
async function deleteExecution(deps: ExecutionUseCaseDeps, caller: Caller | null, sandboxId: string, id: string): Promise<void> {
  const { store, reconciler, clock, answerWithinMs } = deps;
  const sandbox = await getSandbox(store, caller, sandboxId);
  const execution = await store.executions.find(id);
  if (execution?.sandboxId !== sandbox.id) throw new Failure('execution_not_found', { id });
  await reconciler.delete(execution);
  await waitAtMost(clock, answerWithinMs, reconciler.remove(id));
}

export const executionUseCases = {
  run: runExecution,
  list: listExecutions,
  get: getExecution,
  output: readOutput,
  write: writeInput,
  signal: signalExecution,
  resize: resizeExecution,
  delete: deleteExecution,
};

/**
 * The use cases of executions. Sandboxes outside the scope of the caller, and their executions, are not found. They do not wake the
 * sandbox. They throw `sandbox_not_found`, `execution_not_found`, and if they need the runtime, `sandbox_not_running`,
 * `runtime_unavailable` or `runtime_timeout`.
 */
export type Executions = Bound<typeof executionUseCases>;
