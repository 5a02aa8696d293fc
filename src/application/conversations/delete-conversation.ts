import { type Caller, isInScope, userIdOf } from '../../domain/principal.ts';
import { waitAtMost } from '../timers.ts';
import type { ConversationUseCaseDeps } from './conversations.ts';
import { changeConversation, conversationNotFound } from './conversation-records.ts';
import { deleteChange } from './turns/turn-changes.ts';

/** Deletes the conversation for every caller, and its sandbox if no other conversation uses it. Throws `conversation_not_found`. */
export async function deleteConversation(deps: ConversationUseCaseDeps, caller: Caller, id: string): Promise<void> {
  const { store, clock, reconciler, answerWithinMs } = deps;
  const conversation = await store.conversations.find(id);
  if (conversation === null || !isInScope(conversation.ownerId, caller)) throw conversationNotFound(id);
  await changeConversation(deps, id, (conversation) =>
    conversation.deletedAt === null ? { ...deleteChange(conversation, clock.now()), userId: userIdOf(caller) } : null,
  );
  await waitAtMost(clock, answerWithinMs, reconciler.interrupt(id));
}
