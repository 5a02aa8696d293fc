import { type Caller, userIdOf } from '../../domain/principal.ts';
import { changeConversation, requireVisible } from './conversation-records.ts';
import type { ConversationUseCaseDeps } from './conversations.ts';
import { type ConversationView, getConversation } from './get-conversation.ts';
import { withdrawMessageChange } from './turns/turn-changes.ts';

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
      return withdrawMessageChange(conversation, messageId, userId);
    });
  }
  const view = await getConversation(deps, caller, id);
  const { turn } = view.conversation;
  if (turn !== null && (messageId ?? turn.messageId) === turn.messageId) await deps.reconciler.cancel(id, turn.messageId, userId);
  return view;
}
