import type { OwnerScope } from '../../domain/principal.ts';
import type { ConversationUseCaseDeps } from './conversations.ts';
import { type ConversationView, getConversation } from './get-conversation.ts';

/** Requests the end of the current turn, and returns before it ends. Queued messages stay. Throws `conversation_not_found`. */
export async function cancelTurn(deps: ConversationUseCaseDeps, scope: OwnerScope, id: string): Promise<ConversationView> {
  const view = await getConversation(deps, scope, id);
  const { turn } = view.conversation;
  if (turn !== null) await deps.reconciler.cancel(id, turn.messageId);
  return view;
}
