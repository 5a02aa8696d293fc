import { holdsSandbox, startSteps } from '../../domain/conversation-next-step.ts';
import type { Conversation } from '../../domain/conversation.ts';
import { Failure } from '../../domain/failure.ts';
import { type Caller, userIdOf } from '../../domain/principal.ts';
import type { Reason } from '../../domain/reason.ts';
import { waitAtMost } from '../timers.ts';
import type { ConversationUseCaseDeps } from './conversations.ts';
import { changeConversation, type ConversationChange, getVisibleConversation, requireVisible } from './conversation-records.ts';
import { type ConversationView, getConversation } from './get-conversation.ts';
import { archiveChange } from './turns/turn-changes.ts';

export interface ConversationUpdate {
  /** Null removes it. */
  readonly title?: string | null | undefined;
  /**
   * True ends the agent, keeps the changes, and deletes the sandbox if a conversation started it and no other conversation uses it. The
   * transcript stays. Can't be undone. If the changes can't be kept, the sandbox stays; true again tries again.
   */
  readonly archived?: boolean | undefined;
}

/**
 * Changes the title of the conversation, or archives it. Idempotent. Throws `conversation_not_found`, or `conversation_not_ready` if
 * `archived` is false for an archived conversation.
 */
export async function updateConversation(
  deps: ConversationUseCaseDeps, caller: Caller, id: string, { title, archived }: ConversationUpdate,
): Promise<ConversationView> {
  const { store, clock, reconciler, answerWithinMs } = deps;
  const userId = userIdOf(caller);
  const { archivedAt } = await getVisibleConversation(store, caller, id);
  if (archived === false && archivedAt !== null) {
    throw new Failure('conversation_not_ready', { id, reason: { code: 'conversation_archived' } });
  }
  let isEnding = false;
  await changeConversation(deps, id, (conversation) => {
    requireVisible(conversation, caller);
    const renamed = title === undefined || title === conversation.title ? {} : { title };
    isEnding = archived === true && (conversation.archivedAt === null || holdsSandbox(conversation));
    if (isEnding) return { ...endChange(conversation, renamed, clock.now()), userId };
    return 'title' in renamed ? { to: renamed, actor: 'user', userId, reason: null } : null;
  });
  if (archived === true) await waitAtMost(clock, answerWithinMs, isEnding ? reconciler.interrupt(id) : reconciler.reconcile(id));
  return await getConversation(deps, caller, id);
}

/** Returns the change with which the end of the conversation begins, or is tried again. A start that is not finished ends in ERROR. */
function endChange(conversation: Conversation, renamed: Partial<Pick<Conversation, 'title'>>, now: number): ConversationChange {
  const { startStatus: step, startPoint, archivedAt } = conversation;
  const statusReason: Reason | null = startPoint === null ? null : { code: 'keeping_changes' };
  if (archivedAt !== null) return { to: { ...renamed, statusReason }, actor: 'user', reason: null };
  const to = { ...renamed, archivedAt: now, executionStatus: null };
  if (startSteps[step].length === 0) return archiveChange(conversation, { ...to, statusReason }, null);
  const failed: Reason = { code: 'step_failed', step, cause: { code: 'conversation_archived' } };
  return archiveChange(conversation, { ...to, startStatus: 'ERROR', statusReason: failed }, failed);
}
