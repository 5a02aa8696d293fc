import { type Conversation, isEnded, workingDirOf } from '../../domain/conversation.ts';
import type { EventData } from '../../domain/event.ts';
import type { ExecutionRecord } from '../../domain/execution.ts';
import { isFailure, isFailureOf, reasonOfFailure } from '../../domain/failure.ts';
import { isSameReason, type Reason } from '../../domain/reason.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { raceSignal } from '../../ports/abort-signals.ts';
import { waitAtMost } from '../timers.ts';
import type { StepDeps } from './conversation-reconciler.ts';
import { changeConversation } from './conversation-records.ts';

/** No user has this name, so these claims can't collide with the claims of callers. */
const claimOwner = 'skep:conversations';

/** How long to wait for a script after its timeout. A script in a frozen sandbox ends only when the sandbox runs again. */
const endWithinMs = 30_000;

/** The default of how long a setup script may run. */
export const defaultSetupTimeoutMs = 5 * 60_000;

/** Returns the path of a repository's setup script, relative to its root. */
function setupScriptPath(product: string): string {
  return `.${product}/setup.sh`;
}

/** The first line of an executable script chooses its interpreter. Other scripts may be written for bash, so `sh` is the last choice. */
const runnerScript = '[ -x "$0" ] && exec "$0"; command -v bash >/dev/null && exec bash "$0"; exec sh "$0"';

/** Returns true if the repository that was just copied into the sandbox has a setup script. */
export async function hasSetupScript(
  { runtime, product }: StepDeps, conversation: Conversation, sandbox: Sandbox, signal: AbortSignal,
): Promise<boolean> {
  const path = `${workingDirOf(conversation, sandbox.spec)}/${setupScriptPath(product)}`;
  try {
    return (await runtime.files.stat(sandbox.instanceId, path, true, signal)).type === 'file';
  } catch (error) {
    if (isFailureOf(error, 'file_not_found', 'wrong_file_type')) return false;
    throw error;
  }
}

interface SetupResult {
  /** `executionId` is null if its start failed or was not confirmed. The status is `running` if the script may still run. */
  readonly data: EventData['setup_script'];
  /** Null if the script succeeded. */
  readonly reason: Reason | null;
}

/**
 * Runs the repository's setup script as an execution with a time limit, and returns how it ended. A repeated call for the conversation
 * waits for the same execution. Throws `store_unavailable`, or the signal's reason.
 */
export async function runSetupScript(
  deps: StepDeps, conversation: Conversation, sandbox: Sandbox, signal: AbortSignal,
): Promise<SetupResult> {
  const { conversationSandboxes, executions, executionReconciler, clock, product, setupTimeoutMs: timeoutMs } = deps;
  const { id, ownerId, sandboxId } = conversation;
  using _ = conversationSandboxes.keepAwake(sandbox);
  let executionId: string | null = null;
  try {
    const begun = executions.run(ownerId, sandboxId, {
      command: ['sh', '-c', runnerScript, `./${setupScriptPath(product)}`], env: {}, timeoutMs,
      workingDir: workingDirOf(conversation, sandbox.spec),
      stdin: false, tty: null, claim: { ownerId: claimOwner, key: id, fingerprint: 'setup' },
    });
    const execution = await raceSignal(begun, signal);
    executionId = execution.id;
    await noteRunning(deps, id, executionId);
    const leftMs = Math.max(0, execution.startedAt + timeoutMs - clock.now());
    const ended = await waitAtMost(clock, leftMs + endWithinMs, executionReconciler.ended(executionId, signal));
    const reason: Reason | null = ended === null ? { code: 'setup_script_unfinished', withinMs: timeoutMs } : failureOf(ended);
    const status = ended === null ? 'running' : reason === null ? 'succeeded' : 'failed';
    return { data: { executionId, status }, reason };
  } catch (error) {
    if (signal.aborted || !isFailure(error) || isFailureOf(error, 'store_unavailable')) throw error;
    const cause = reasonOfFailure(error);
    const isUncertain = isFailureOf(error, 'runtime_timeout', 'runtime_unavailable');
    if (isUncertain) return { data: { executionId, status: 'running' }, reason: { code: 'setup_script_unconfirmed', cause } };
    return { data: { executionId, status: 'failed' }, reason: failedBy(cause) };
  }
}

/** Writes once that the script runs, with its execution id. */
async function noteRunning(deps: StepDeps, id: string, executionId: string): Promise<void> {
  const reason: Reason = { code: 'running_setup_script', executionId };
  await changeConversation(deps, id, (conversation) => {
    const { startStatus, statusReason } = conversation;
    if (startStatus !== 'RUNNING_SETUP_SCRIPT' || isEnded(conversation) || isSameReason(statusReason, reason)) return null;
    const events = [{ kind: 'setup_script', data: { executionId, status: 'running' } }] as const;
    return { to: { statusReason: reason }, actor: 'skep', reason: null, events };
  });
}

function failureOf({ status, exitCode, statusReason }: ExecutionRecord): Reason | null {
  if (status === 'exited' && exitCode === 0) return null;
  // If the script exited by itself, the reason only says why it was not durable.
  const wasEnded = status !== 'exited' || statusReason?.code === 'execution_timed_out';
  return failedBy(wasEnded ? statusReason : null, exitCode);
}

function failedBy(cause: Reason | null, exitCode: number | null = null): Reason {
  return { code: 'setup_script_failed', exitCode, cause };
}
