import { startSteps } from '../../domain/conversation-next-step.ts';
import { Failure } from '../../domain/failure.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { Reason } from '../../domain/reason.ts';
import { waitAtMost } from '../timers.ts';
import type { ConversationUseCaseDeps } from './conversations.ts';
import { changeConversation, checkVisible, getVisibleConversation } from './conversation-records.ts';
import { type ConversationView, getConversation } from './get-conversation.ts';
import { endWorkChange } from './turns/turn-end.ts';

export interface ConversationUpdate {
  /** Null removes it. */
  readonly title?: string | null | undefined;
  /**
   * True ends the agent, and deletes the sandbox that the conversation started if no other conversation uses it. The transcript stays.
   * Can't be undone.
   */
  readonly archived?: boolean | undefined;
}

/**
 * Changes the title of the conversation, or archives it. Idempotent. Throws `conversation_not_found`, or `conversation_not_ready` if
 * `archived` is false for an archived conversation.
 */
export async function updateConversation(
  deps: ConversationUseCaseDeps, scope: OwnerScope, id: string, { title, archived }: ConversationUpdate,
): Promise<ConversationView> {
  const { store, clock, reconciler, answerWithinMs } = deps;
  const { archivedAt } = await getVisibleConversation(store, scope, id);
  if (archived === false && archivedAt !== null) {
    throw new Failure('conversation_not_ready', { id, reason: { code: 'conversation_archived' } });
  }
  await changeConversation(deps, id, (conversation) => {
    checkVisible(conversation, scope);
    const renamed = title === undefined || title === conversation.title ? {} : { title };
    if (archived === true && conversation.archivedAt === null) {
      const { startStatus: step } = conversation;
      const statusReason: Reason = { code: 'step_failed', step, cause: { code: 'conversation_archived' } };
      const cutOff = startSteps[step].length === 0 ? null : ({ startStatus: 'ERROR', statusReason } as const);
      const to = { ...renamed, archivedAt: clock.now(), executionStatus: null, statusReason: null, ...cutOff };
      return { ...endWorkChange(conversation, to, 'conversation_archived'), reason: cutOff?.statusReason ?? null };
    }
    return 'title' in renamed ? { to: renamed, actor: 'user', reason: null } : null;
  });
  if (archived === true) await waitAtMost(clock, answerWithinMs, reconciler.interrupt(id));
  return await getConversation(deps, scope, id);
}
