import type { PermissionRequest, TurnStopReason } from '../../../domain/agent.ts';
import { statusAfterTurn } from '../../../domain/conversation-next-step.ts';
import type { Conversation, QueuedMessage } from '../../../domain/conversation.ts';
import type { EventActor, EventBody } from '../../../domain/event.ts';
import type { Reason } from '../../../domain/reason.ts';
import type { ConversationChange } from '../conversation-records.ts';

interface RunningTurn {
  readonly turn: QueuedMessage;
  readonly permission: Conversation['permission'];
}

/** Returns the change of the record at the end of a turn. An open request for permission is withdrawn. */
export function endTurnChange(
  running: RunningTurn, stopReason: TurnStopReason, reason: Reason | null, actor: EventActor,
): ConversationChange {
  const executionStatus = statusAfterTurn(stopReason);
  const statusReason = executionStatus === 'error' ? (reason ?? ({ code: 'turn_failed', stopReason } as const)) : null;
  return { to: { turn: null, permission: null, executionStatus, statusReason }, actor, reason, events: turnEndEvents(running, stopReason) };
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

/** Returns the change with which the user ends all work of a conversation. */
export function endWorkChange(
  { turn, permission }: Conversation, when: ConversationChange['to'], kind: 'conversation_archived' | 'conversation_deleted',
): ConversationChange {
  const events = turn === null ? [] : turnEndEvents({ turn, permission }, 'interrupted');
  return { to: { ...when, turn: null, permission: null, queue: [] }, actor: 'user', reason: null, events: [...events, { kind, data: {} }] };
}
