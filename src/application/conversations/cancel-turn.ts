import type { OwnerScope } from '../../domain/principal.ts';
import type { ConversationsDeps } from './conversation-deps.ts';
import { getConversation, type ConversationView } from './get-conversation.ts';

/**
 * Asks the agent to stop its turn and returns at once. The turn ends a moment later, by itself or with the agent. Queued
 * messages stay, and the next is sent then. Idempotent; without a turn nothing happens. Throws
 * `conversation_not_found` or `store_unavailable`.
 */
export async function cancelTurn(deps: ConversationsDeps, scope: OwnerScope, id: string): Promise<ConversationView> {
  const view = await getConversation(deps, scope, id);
  if (view.conversation.turn !== null) deps.reconciler.cancel(id);
  return view;
}
