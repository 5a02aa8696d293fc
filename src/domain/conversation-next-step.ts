import type { TurnStopReason } from './agent.ts';
import { queueRefusal } from './conversation-limits.ts';
import {
  type Conversation, type ConversationStartStatus, type AgentStatus, type Message, type QueuedMessage,
  type RepositoryLocation, type StartedTurn, type TurnPosition,
} from './conversation.ts';
import { type OpenPermission, timeLeftToAnswer } from './permission.ts';
import type { Reason } from './reason.ts';
import { mayTryAgain } from './sandbox-lifecycle.ts';
import type { Sandbox, SandboxStatus } from './sandbox.ts';
import type { SandboxSpec } from './sandbox-spec.ts';

/** For each start status, those that may follow. A status that does not apply to a conversation is skipped. */
export const startSteps: Readonly<Record<ConversationStartStatus, readonly ConversationStartStatus[]>> = {
  WORKING: ['WAITING_FOR_SANDBOX', 'ERROR'],
  WAITING_FOR_SANDBOX: ['PREPARING_REPOSITORY', 'STARTING_AGENT', 'READY', 'ERROR'],
  PREPARING_REPOSITORY: ['RUNNING_SETUP_SCRIPT', 'LISTING_MICROAGENTS', 'ERROR'],
  RUNNING_SETUP_SCRIPT: ['LISTING_MICROAGENTS', 'ERROR'],
  LISTING_MICROAGENTS: ['STARTING_AGENT', 'READY', 'ERROR'],
  STARTING_AGENT: ['READY', 'ERROR'],
  READY: [],
  ERROR: [],
};

/** Returns true while its start, work, archiving or deletion is not finished. A queue counts as work only if there is an agent for it. */
export function isUnsettled(conversation: Conversation): boolean {
  const { startStatus, turn, queue, executionStatus, archivedAt, releasedAt, deletedAt, removedAt } = conversation;
  if (deletedAt !== null) return removedAt === null;
  if (archivedAt !== null) return releasedAt === null && !holdsSandbox(conversation);
  if (startSteps[startStatus].length > 0 || turn !== null) return true;
  return startStatus === 'READY' && executionStatus !== null && queue.length > 0;
}

/** Returns true if it is archived, but its sandbox stays because its last changes could not be kept. */
export function holdsSandbox({ archivedAt, releasedAt, statusReason }: Conversation): boolean {
  return archivedAt !== null && releasedAt === null && statusReason?.code === 'changes_not_kept';
}

/** Returns true while the agent is at work. An agent that waits for its user is not at work. */
export function isWorking({ turn, permission }: Conversation): boolean {
  return turn !== null && permission === null;
}

export type StartStep =
  | { readonly kind: 'none' }
  | { readonly kind: 'start-sandbox' }
  | { readonly kind: 'resume-sandbox' }
  | { readonly kind: 'await-sandbox' }
  | { readonly kind: 'prepare-repository'; readonly sandbox: Sandbox; readonly repository: RepositoryLocation }
  | { readonly kind: 'run-setup-script'; readonly sandbox: Sandbox }
  | { readonly kind: 'list-microagents'; readonly sandbox: Sandbox; readonly repository: RepositoryLocation }
  | { readonly kind: 'start-agent'; readonly sandbox: Sandbox }
  | { readonly kind: 'record'; readonly status: ConversationStartStatus; readonly reason: Reason | null };

/** Decides the next step of the start. `sandbox` is null if there is none, or a deleted one. */
export function nextStartStep(conversation: Conversation, sandbox: Sandbox | null, now: number): StartStep {
  const { startStatus, startsSandbox } = conversation;
  if (startStatus === 'READY' || startStatus === 'ERROR') return { kind: 'none' };
  if (sandbox === null && startStatus === 'WORKING' && startsSandbox) return { kind: 'start-sandbox' };
  if (sandbox === null) return failedStep(startStatus, sandboxLossReason(null));
  if (startStatus === 'WORKING') return { kind: 'record', status: 'WAITING_FOR_SANDBOX', reason: null };
  return stepInSandbox(conversation, sandbox, now);
}

/** Returns the status that follows when the work of the present one is done, if the repository has no setup script. */
export function statusAfter(
  { startStatus, selectedRepository }: Pick<Conversation, 'startStatus' | 'selectedRepository'>,
  { spec }: Pick<Sandbox, 'spec'>,
): ConversationStartStatus {
  if (startStatus === 'WAITING_FOR_SANDBOX' && selectedRepository !== null) return 'PREPARING_REPOSITORY';
  if (startStatus === 'PREPARING_REPOSITORY' || startStatus === 'RUNNING_SETUP_SCRIPT') return 'LISTING_MICROAGENTS';
  return spec.agent !== null && startStatus !== 'STARTING_AGENT' ? 'STARTING_AGENT' : 'READY';
}

/** From WAITING_FOR_SANDBOX on, every step needs a running sandbox. If it was paused meanwhile, it is resumed. */
function stepInSandbox(conversation: Conversation, sandbox: Sandbox, now: number): StartStep {
  switch (sandbox.status) {
    case 'RUNNING':
      return stepInRunningSandbox(conversation, sandbox);
    case 'PAUSED':
      return { kind: mayTryAgain(sandbox, now) ? 'resume-sandbox' : 'none' };
    case 'STARTING':
    case 'PAUSING':
    case 'RESUMING':
      return { kind: 'await-sandbox' };
    case 'ERROR':
    case 'MISSING':
      return failedStep(conversation.startStatus, sandboxLossReason(sandbox));
  }
}

function stepInRunningSandbox(conversation: Conversation, sandbox: Sandbox): StartStep {
  const { startStatus: status, gitProvider: provider, repositoryPath: path } = conversation;
  const repository = provider === null || path === null ? null : { provider, path };
  if (status === 'PREPARING_REPOSITORY' && repository !== null) return { kind: 'prepare-repository', sandbox, repository };
  if (status === 'RUNNING_SETUP_SCRIPT') return { kind: 'run-setup-script', sandbox };
  if (status === 'LISTING_MICROAGENTS' && repository !== null) return { kind: 'list-microagents', sandbox, repository };
  if (status === 'STARTING_AGENT' && sandbox.spec.agent !== null) return { kind: 'start-agent', sandbox };
  return { kind: 'record', status: statusAfter(conversation, sandbox), reason: null };
}

function failedStep(step: ConversationStartStatus, cause: Reason | null): StartStep {
  return { kind: 'record', status: 'ERROR', reason: { code: 'step_failed', step, cause } };
}

export type WorkStep =
  | { readonly kind: 'none' }
  /** The record has a turn that no process runs, and that can't continue. */
  | { readonly kind: 'interrupt' }
  /** The record has a turn that no process runs, but whose agent still works. */
  | { readonly kind: 'resume-turn'; readonly sandbox: Sandbox; readonly turn: StartedTurn; readonly position: TurnPosition }
  /** Nobody has answered in time. */
  | { readonly kind: 'withdraw-permission'; readonly permission: OpenPermission; readonly withinMs: number }
  | { readonly kind: 'fail'; readonly reason: Reason }
  | { readonly kind: 'resume-sandbox' }
  | { readonly kind: 'await-sandbox' }
  | { readonly kind: 'start-agent'; readonly sandbox: Sandbox }
  /** Without a message, the turn is the work that the agent has begun by itself. */
  | { readonly kind: 'run-turn'; readonly sandbox: Sandbox; readonly message: QueuedMessage | null };

/**
 * Called only while this process runs no turn of the conversation, so a turn in the record belongs to an earlier process. `agent` is null
 * if none runs in this process.
 */
export function nextWorkStep(
  conversation: Conversation, sandbox: Sandbox | null, agent: { readonly hasUnpromptedWork: boolean } | null, now: number,
): WorkStep {
  const agentRuns = agent !== null;
  const { turn, queue, executionStatus } = conversation;
  if (turn !== null) return agentRuns ? { kind: 'interrupt' } : stepOfTurn(conversation, turn, sandbox, now);
  const [message] = queue;
  if (executionStatus === null) return { kind: 'none' };
  const loss = sandboxLossReason(sandbox);
  if (loss !== null) return message === undefined && executionStatus === 'error' ? { kind: 'none' } : { kind: 'fail', reason: loss };
  if (sandbox === null) return { kind: 'none' };
  if (message === undefined) {
    const begins = agent?.hasUnpromptedWork === true && sandbox.status === 'RUNNING';
    return begins ? { kind: 'run-turn', sandbox, message: null } : { kind: 'none' };
  }
  switch (sandbox.status) {
    case 'RUNNING':
      return agentRuns ? { kind: 'run-turn', sandbox, message } : { kind: 'start-agent', sandbox };
    case 'PAUSED':
      return { kind: isPausedAfterLastMessage(sandbox, queue) || !mayTryAgain(sandbox, now) ? 'none' : 'resume-sandbox' };
    case 'STARTING':
    case 'PAUSING':
    case 'RESUMING':
    case 'ERROR':
    case 'MISSING':
      return { kind: 'await-sandbox' };
  }
}

/** A turn of an earlier process continues if its agent is still there. */
function stepOfTurn({ permission, queue }: Conversation, turn: StartedTurn, sandbox: Sandbox | null, now: number): WorkStep {
  const { agent: position } = turn;
  if (position === undefined || sandbox === null || sandboxLossReason(sandbox) !== null) return { kind: 'interrupt' };
  if (sandbox.status === 'RUNNING') return { kind: 'resume-turn', sandbox, turn, position };
  if (sandbox.status !== 'PAUSED') return { kind: 'await-sandbox' };
  // Nobody can ask the agent to stop in a sandbox that its owner froze.
  const isHeldCancelled = turn.cancelled === true && sandbox.pausedBy?.actor === 'user';
  if (sandbox.pauseKind === 'stop' || isHeldCancelled) return { kind: 'interrupt' };
  const withinMs = sandbox.spec.agent?.permissionTimeoutMs ?? Number.MAX_SAFE_INTEGER;
  if (permission !== null && timeLeftToAnswer(permission, withinMs, now) === 0) {
    return { kind: 'withdraw-permission', permission, withinMs };
  }
  const mayRest = permission !== null || isPausedAfterLastMessage(sandbox, [turn, ...queue]);
  return { kind: mayRest || !mayTryAgain(sandbox, now) ? 'none' : 'resume-sandbox' };
}

/** Returns true if the owner paused the sandbox after the last of the messages. Then only the next message or answer resumes it. */
export function isPausedAfterLastMessage({ pausedBy }: Sandbox, messages: readonly QueuedMessage[]): boolean {
  return pausedBy?.actor === 'user' && messages.every(({ sandboxVersion }) => pausedBy.version > sandboxVersion);
}

/** Returns why the sandbox does not run again by itself; null if it may. */
export function sandboxLossReason(sandbox: Sandbox | null): Reason | null {
  if (sandbox === null) return { code: 'sandbox_deleted' };
  const { status, statusReason } = sandbox;
  return status === 'ERROR' || status === 'MISSING' ? { code: 'sandbox_lost', status, cause: statusReason } : null;
}

/** Returns why the conversation takes no message; null if it does. `spec` is used while there is no sandbox yet. */
export function messageRefusal(
  conversation: Conversation,
  message: Message,
  sandbox: Sandbox | null,
  spec: SandboxSpec | null,
): Reason | null {
  const { startStatus, statusReason, executionStatus, archivedAt } = conversation;
  if (archivedAt !== null) return { code: 'conversation_archived' };
  if (startStatus === 'ERROR') return { code: 'start_failed', cause: statusReason };
  const starting = startStatus !== 'READY';
  // During the start its sandbox may have no record yet.
  const present = sandbox?.deletedAt === null ? sandbox : null;
  const loss = present === null && starting ? null : sandboxLossReason(present);
  if (loss !== null) return loss;
  // After the start, it has an execution status only if it has an agent.
  const hasAgent = starting ? (present?.spec ?? spec)?.agent != null : executionStatus !== null;
  return hasAgent ? queueRefusal(conversation, message) : { code: 'agent_not_named' };
}

export function statusAfterTurn(stopReason: TurnStopReason): AgentStatus {
  return stopReason === 'failed' || stopReason === 'interrupted' ? 'error' : 'idle';
}

/**
 * `status` is the sandbox's status as callers see it; it is set even if the sandbox has no record. A turn in a frozen sandbox is `frozen`,
 * unless it waits for its user.
 */
export function shownExecutionStatus(
  { executionStatus }: Conversation, status: SandboxStatus, sandbox: Sandbox | null,
): AgentStatus | null {
  if (executionStatus === null) return null;
  if (status === 'ERROR' || status === 'MISSING') return 'error';
  if (status !== 'PAUSED' && status !== 'RESUMING') return executionStatus === 'frozen' ? 'running' : executionStatus;
  if (sandbox?.pauseKind === 'freeze') return executionStatus === 'running' ? 'frozen' : executionStatus;
  return executionStatus === 'error' ? 'error' : 'idle';
}
