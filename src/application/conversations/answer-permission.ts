import { type Caller, userIdOf } from '../../domain/principal.ts';
import { Failure } from '../../domain/failure.ts';
import type { ConversationUseCaseDeps } from './conversations.ts';
import { changeConversation, conversationNotFound, getVisibleConversation, requireVisible } from './conversation-records.ts';
import { getConversation, type ConversationView } from './get-conversation.ts';

/** Throws `conversation_not_found`, `permission_not_found` (it is no longer open), `invalid_request` (no such option). */
export async function answerPermission(
  deps: ConversationUseCaseDeps,
  caller: Caller,
  id: string,
  permissionId: string,
  optionId: string,
): Promise<ConversationView> {
  const { sandboxId } = await getVisibleConversation(deps.store, caller, id);
  const sandbox = await deps.store.sandboxes.find(sandboxId);
  const written = await changeConversation(deps, id, (conversation) => {
    requireVisible(conversation, caller);
    const { permission, turn } = conversation;
    if (permission?.permissionId !== permissionId) throw new Failure('permission_not_found', { id: permissionId });
    const options = permission.options.map((option) => option.optionId);
    if (!options.includes(optionId)) {
      throw new Failure('invalid_request', { problems: [{ argument: 'optionId', reason: { code: 'unknown_option', options } }] });
    }
    // Like a message, the answer wakes a sandbox that its owner paused before.
    const answered = turn === null || sandbox === null ? turn : { ...turn, sandboxVersion: sandbox.version };
    return {
      to: { permission: null, executionStatus: 'running', turn: answered },
      actor: 'user',
      userId: userIdOf(caller),
      reason: null,
      events: [{ kind: 'permission_answered', data: { permissionId, optionId } }],
    };
  });
  if (written === null) throw conversationNotFound(id);
  // Perhaps no process runs the turn, because its sandbox is frozen.
  deps.reconciler.enqueue(id);
  return await getConversation(deps, caller, id);
}
