import type { Conversation } from '../../domain/conversation.ts';
import { type Caller, userIdOf } from '../../domain/principal.ts';
import { changeConversation, type ConversationChange, requireVisible } from './conversation-records.ts';
import type { ConversationUseCaseDeps } from './conversations.ts';
import { type ConversationView, getConversation } from './get-conversation.ts';

/**
 * Requests the end of the current turn, and returns before it ends. Queued messages stay. With a message id, requests only the end of its
 * turn, and withdraws the message if it is queued. Throws `conversation_not_found`.
 */
export async function cancelTurn(
  deps: ConversationUseCaseDeps, caller: Caller, id: string, messageId: string | null = null,
): Promise<ConversationView> {
  const userId = userIdOf(caller);
  if (messageId !== null) {
    await changeConversation(deps, id, (conversation) => {
      requireVisible(conversation, caller);
      return withdraw(conversation, messageId, userId);
    });
  }
  const view = await getConversation(deps, caller, id);
  const { turn } = view.conversation;
  if (turn !== null && (messageId ?? turn.messageId) === turn.messageId) await deps.reconciler.cancel(id, turn.messageId, userId);
  return view;
}

/** Returns the change that takes the message out of the queue; null if it is not queued. Its turn ends before it begins. */
function withdraw({ queue, statusReason }: Conversation, messageId: string, userId: string): ConversationChange | null {
  const left = queue.filter((queued) => queued.messageId !== messageId);
  if (left.length === queue.length) return null;
  const isNoneWaiting = left.length === 0 && statusReason?.code === 'message_waiting';
  return {
    to: { queue: left, statusReason: isNoneWaiting ? null : statusReason },
    actor: 'user',
    userId,
    reason: { code: 'message_withdrawn' },
    // The log has no `turn_started` for the message, and the record no turn that could end.
    events: [{ kind: 'turn_ended', data: { messageId, stopReason: 'cancelled' } }],
  };
}
