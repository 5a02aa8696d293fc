import type { TurnStopReason } from '../../../domain/agent.ts';
import type { Conversation, QueuedMessage } from '../../../domain/conversation.ts';
import { statusAfterTurn } from '../../../domain/conversation-next-step.ts';
import type { EventActor, EventBody } from '../../../domain/event.ts';
import type { Changed } from '../records.ts';

/** How the end of a turn is written down: what it still asked leave for is withdrawn. */
export function endOfTurn(
  { turn, permission }: { readonly turn: QueuedMessage; readonly permission: Conversation['permission'] },
  stopReason: TurnStopReason,
  reason: string | null,
  actor: EventActor,
): Changed {
  return {
    to: { turn: null, permission: null, executionStatus: statusAfterTurn(stopReason), statusDetail: statusAfterTurn(stopReason) === 'error' ? (reason ?? `the turn ended: ${stopReason}`) : null },
    actor,
    reason,
    events: turnEnded({ turn, permission }, stopReason),
  };
}

/** What the log tells of the end of a turn. */
export function turnEnded(
  { turn, permission }: { readonly turn: QueuedMessage; readonly permission: Conversation['permission'] },
  stopReason: TurnStopReason,
): EventBody[] {
  const withdrawn: EventBody[] = permission === null ? [] : [{ kind: 'permission_answered', data: { permissionId: permission.permissionId, optionId: null } }];
  return [...withdrawn, { kind: 'turn_ended', data: { messageId: turn.messageId, stopReason } }];
}
