import type { TurnStopReason } from '../../../domain/agent.ts';
import type { PermissionRequest } from '../../../domain/permission.ts';
import { statusAfterTurn } from '../../../domain/conversation-next-step.ts';
import { type Conversation, isEnded, type QueuedMessage, type StartedMessage } from '../../../domain/conversation.ts';
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
export function beginTurnChange(conversation: Conversation, begin: NewTurn, turn: StartedMessage): ConversationChange | null {
  const { queue } = conversation;
  const { messageId } = turn;
  const nextId = begin.kind === 'message' ? messageId : undefined;
  if (isEnded(conversation) || conversation.turn !== null || queue[0]?.messageId !== nextId) return null;
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

interface RunningTurn extends Pick<Conversation, 'permission'> {
  readonly turn: QueuedMessage;
}

/** Returns the change of the record at the end of a turn. An open request for permission is withdrawn. An archived one has no status. */
export function endTurnChange(
  running: RunningTurn & Pick<Conversation, 'archivedAt'>, stopReason: TurnStopReason, reason: Reason | null, actor: EventActor,
): ConversationChange {
  if (running.archivedAt !== null) {
    const cutOff = { actor: 'user', reason: { code: 'interrupted_by_archiving' } } as const;
    const why = stopReason === 'interrupted' ? cutOff : { actor, reason };
    return { to: { turn: null, permission: null }, ...why, events: turnEndEvents(running, stopReason) };
  }
  const executionStatus = statusAfterTurn(stopReason);
  const statusReason = executionStatus === 'error' ? (reason ?? ({ code: 'turn_failed', stopReason } as const)) : null;
  return { to: { turn: null, permission: null, executionStatus, statusReason }, actor, reason, events: turnEndEvents(running, stopReason) };
}

/** Who interrupted a turn. Without a reason, the cause is not the sandbox. */
export interface Interruption {
  readonly actor: EventActor;
  readonly reason?: Reason;
}

/** Returns who interrupted a turn, and why, if the reason is its sandbox. Null is a deleted one. */
export function interruptionOf(sandbox: Sandbox | null): Interruption {
  if (sandbox === null) return { actor: 'skep', reason: { code: 'sandbox_deleted' } };
  if (sandbox.pauseKind !== 'stop' || sandbox.status === 'RESUMING') return { actor: 'skep' };
  const { statusReason: cause } = sandbox;
  const isByUser = cause?.code === 'paused_by_owner' || cause?.code === 'paused_by_administrator';
  return { actor: isByUser ? 'user' : 'skep', reason: { code: 'sandbox_stopped', cause } };
}

/** How a turn ended, and who ended it. */
export interface EndedTurn extends AgentTurn {
  readonly actor: EventActor;
  /** The user who cancelled it. Null if an earlier version did not record that. */
  readonly userId?: string | null;
}

export function turnEndEvents({ turn, permission }: RunningTurn, stopReason: TurnStopReason): EventBody[] {
  const withdrawn = permission === null ? [] : [withdrawalEvent(permission)];
  return [...withdrawn, { kind: 'turn_ended', data: { messageId: turn.messageId, stopReason } }];
}

function withdrawalEvent({ permissionId }: PermissionRequest): EventBody {
  return { kind: 'permission_answered', data: { permissionId, optionId: null } };
}

/** Returns the change in which an open request for permission is withdrawn; null if there is none. */
export function permissionWithdrawal(
  permission: Conversation['permission'], reason: Reason = { code: 'permission_withdrawn' },
): ConversationChange | null {
  if (permission === null) return null;
  return { to: { permission: null, executionStatus: 'running' }, actor: 'skep', reason, events: [withdrawalEvent(permission)] };
}

/** Returns the change with which the user archives a conversation. Its turn ends later, when the agent's last output is written. */
export function archiveChange({ permission }: Conversation, when: ConversationChange['to'], reason: Reason | null): ConversationChange {
  const withdrawn = permission === null ? [] : [withdrawalEvent(permission)];
  const events: readonly EventBody[] = [...withdrawn, { kind: 'conversation_archived', data: {} }];
  return { to: { ...when, permission: null, queue: [] }, actor: 'user', reason, events };
}

/** Returns the change with which the user deletes a conversation. */
export function deleteChange({ turn, permission }: Conversation, deletedAt: number): ConversationChange {
  const events = turn === null ? [] : turnEndEvents({ turn, permission }, 'interrupted');
  const to = { deletedAt, turn: null, permission: null, queue: [] };
  return { to, actor: 'user', reason: null, events: [...events, { kind: 'conversation_deleted', data: {} }] };
}
