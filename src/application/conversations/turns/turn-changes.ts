import type { TurnStopReason } from '../../../domain/agent.ts';
import { statusAfterTurn } from '../../../domain/conversation-next-step.ts';
import { type Conversation, isEnded, type StartedTurn } from '../../../domain/conversation.ts';
import type { EventActor, EventBody } from '../../../domain/event.ts';
import type { Reason } from '../../../domain/reason.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import type { AgentTurn } from '../../../ports/agent-protocol.ts';
import type { ConversationChange } from '../conversation-records.ts';
import type { MicroagentContext } from './microagent-context.ts';

/** A turn that begins. */
export type NewTurn =
  /** With the next message of the queue. `context` is null if no microagent applies to it. */
  | { readonly kind: 'message'; readonly context: MicroagentContext | null }
  /** With work that the agent has begun by itself. A message of the queue comes before it. */
  | { readonly kind: 'unprompted' };

/** Returns the change that takes the message from the queue and begins its turn. Null if something else comes next. */
export function beginTurnChange(conversation: Conversation, begin: NewTurn, turn: StartedTurn): ConversationChange | null {
  const { queue } = conversation;
  const { messageId } = turn;
  const isNext = begin.kind === 'message' ? queue[0]?.messageId === messageId : queue.length === 0;
  if (isEnded(conversation) || conversation.turn !== null || !isNext) return null;
  const context = begin.kind === 'message' ? begin.context : null;
  const microagents = context?.microagents ?? conversation.microagents;
  return {
    usesSandbox: true,
    to: { turn, queue: queue.slice(1), executionStatus: 'running', statusReason: null, microagents },
    actor: 'skep',
    reason: null,
    events: [...(context === null ? [] : [context.event]), { kind: 'turn_started', data: { messageId } }],
  };
}

/** How a turn ended, and who ended it. */
export interface EndedTurn extends AgentTurn {
  readonly actor: EventActor;
  /** The user who cancelled it. Null if an earlier version did not record that. */
  readonly userId?: string | null;
}

/**
 * Returns the change of the record at the end of its turn. An open request for permission is withdrawn. An archived conversation gets no
 * status. `also` is what else changes in the record.
 */
export function endTurnChange(
  conversation: Conversation, { stopReason, reason, actor, userId }: EndedTurn, also: ConversationChange['to'] = {},
): ConversationChange {
  const events = turnEndEvents(conversation, stopReason);
  const to = { turn: null, permission: null };
  if (conversation.archivedAt !== null) {
    const isByArchiving = stopReason === 'interrupted';
    const cause = isByArchiving ? ({ actor: 'user', reason: { code: 'interrupted_by_archiving' } } as const) : { actor, reason };
    return { to: { ...to, ...also }, ...cause, userId, events };
  }
  const executionStatus = statusAfterTurn(stopReason);
  const statusReason = executionStatus === 'error' ? (reason ?? ({ code: 'turn_failed', stopReason } as const)) : null;
  return { to: { ...to, executionStatus, statusReason, ...also }, actor, userId, reason, events };
}

/** Who interrupted a turn. The reason is absent if the sandbox did not cause it. */
export interface Interruption {
  readonly actor: EventActor;
  readonly reason?: Reason;
}

/** Returns who interrupted a turn, and the reason if its sandbox caused it. `sandbox` is null if it was deleted. */
export function interruptionOf(sandbox: Sandbox | null): Interruption {
  if (sandbox === null) return { actor: 'skep', reason: { code: 'sandbox_deleted' } };
  if (sandbox.pauseKind !== 'stop' || sandbox.status === 'RESUMING') return { actor: 'skep' };
  const { statusReason: cause } = sandbox;
  const isByUser = cause?.code === 'paused_by_owner' || cause?.code === 'paused_by_administrator';
  return { actor: isByUser ? 'user' : 'skep', reason: { code: 'sandbox_stopped', cause } };
}

/** Returns the events at the end of the record's turn. None if it has no turn. */
function turnEndEvents({ turn, permission }: Conversation, stopReason: TurnStopReason): EventBody[] {
  if (turn === null) return [];
  return [...withdrawalEvents(permission), { kind: 'turn_ended', data: { messageId: turn.messageId, stopReason } }];
}

function withdrawalEvents(permission: Conversation['permission']): EventBody[] {
  return permission === null ? [] : [{ kind: 'permission_answered', data: { permissionId: permission.permissionId, optionId: null } }];
}

/** Returns the change in which an open request for permission is withdrawn; null if there is none. */
export function permissionWithdrawal(
  permission: Conversation['permission'], reason: Reason = { code: 'permission_withdrawn' },
): ConversationChange | null {
  if (permission === null) return null;
  return { to: { permission: null, executionStatus: 'running' }, actor: 'skep', reason, events: withdrawalEvents(permission) };
}

/** Returns the change that takes the message out of the queue; null if it is not queued. Its turn ends before it begins. */
export function withdrawMessageChange(
  { queue, statusReason }: Conversation, messageId: string, userId: string,
): ConversationChange | null {
  const left = queue.filter((queued) => queued.messageId !== messageId);
  if (left.length === queue.length) return null;
  const isNoneWaiting = left.length === 0 && statusReason?.code === 'message_waiting';
  return {
    to: { queue: left, statusReason: isNoneWaiting ? null : statusReason },
    actor: 'user',
    userId,
    reason: { code: 'message_withdrawn' },
    // The record has no turn that could end.
    events: [{ kind: 'turn_ended', data: { messageId, stopReason: 'cancelled' } }],
  };
}

/** Returns the change with which the user archives a conversation. Its turn ends later, when the agent's last output is written. */
export function archiveChange({ permission }: Conversation, when: ConversationChange['to'], reason: Reason | null): ConversationChange {
  const events: readonly EventBody[] = [...withdrawalEvents(permission), { kind: 'conversation_archived', data: {} }];
  return { to: { ...when, permission: null, queue: [] }, actor: 'user', reason, events };
}

/** Returns the change with which the user deletes a conversation. */
export function deleteChange(conversation: Conversation, deletedAt: number): ConversationChange {
  const events: readonly EventBody[] = [...turnEndEvents(conversation, 'interrupted'), { kind: 'conversation_deleted', data: {} }];
  return { to: { deletedAt, turn: null, permission: null, queue: [] }, actor: 'user', reason: null, events };
}
