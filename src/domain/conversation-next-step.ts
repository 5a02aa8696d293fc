import type { TurnStopReason } from './agent.ts';
import type { Conversation, ExecutionStatus, QueuedMessage } from './conversation.ts';
import type { Sandbox, SandboxStatus } from './sandbox.ts';

/** What to do next for the work of a conversation that is READY. */
export type WorkStep =
  | { readonly kind: 'none' }
  /** A turn is written down that nobody here runs. */
  | { readonly kind: 'interrupt' }
  /** Its sandbox will never run again. */
  | { readonly kind: 'give-up'; readonly detail: string }
  | { readonly kind: 'resume-sandbox' }
  | { readonly kind: 'await-sandbox' }
  | { readonly kind: 'start-agent'; readonly sandbox: Sandbox }
  | { readonly kind: 'take-turn'; readonly sandbox: Sandbox; readonly message: QueuedMessage };

/**
 * Asked while no turn of the conversation runs here, so that one which is written down is an earlier process's: a store
 * serves one process for now. `held`: the owner paused the sandbox after the last message came, and it is left so.
 */
export function nextWorkStep(conversation: Conversation, sandbox: Sandbox | null, agentRuns: boolean, held: boolean): WorkStep {
  const { turn, queue, executionStatus } = conversation;
  if (turn !== null) return { kind: 'interrupt' };
  const [message] = queue;
  if (executionStatus === null) return { kind: 'none' };
  const loss = sandboxLoss(sandbox);
  if (loss !== null) return message === undefined && executionStatus === 'error' ? { kind: 'none' } : { kind: 'give-up', detail: loss };
  if (message === undefined || sandbox === null) return { kind: 'none' };
  switch (sandbox.status) {
    case 'RUNNING':
      return agentRuns ? { kind: 'take-turn', sandbox, message } : { kind: 'start-agent', sandbox };
    case 'PAUSED':
      return held ? { kind: 'none' } : { kind: 'resume-sandbox' };
    case 'STARTING':
    case 'PAUSING':
    case 'RESUMING':
    case 'ERROR':
    case 'MISSING':
      return { kind: 'await-sandbox' };
  }
}

/** Why the sandbox will never run again, in words; null where it may. */
export function sandboxLoss(sandbox: Sandbox | null): string | null {
  if (sandbox === null) return 'its sandbox was deleted';
  const { status, statusDetail } = sandbox;
  return status === 'ERROR' || status === 'MISSING' ? `its sandbox is ${status}: ${statusDetail ?? 'no reason is known'}` : null;
}

/** What the conversation does after a turn: a turn that did not come to its end is an error until the next one begins. */
export function statusAfterTurn(stopReason: TurnStopReason): ExecutionStatus {
  return stopReason === 'failed' || stopReason === 'interrupted' ? 'error' : 'idle';
}

/**
 * What the conversation does, given how its sandbox is. In one that rests nothing runs: a turn is held there, and is
 * `idle` until the sandbox goes on. One that is lost is an error.
 */
export function shownExecution({ executionStatus }: Conversation, sandboxStatus: SandboxStatus): ExecutionStatus | null {
  if (executionStatus === null) return null;
  if (sandboxStatus === 'ERROR' || sandboxStatus === 'MISSING') return 'error';
  const rests = sandboxStatus === 'PAUSED' || sandboxStatus === 'RESUMING';
  return rests && executionStatus !== 'error' ? 'idle' : executionStatus;
}
