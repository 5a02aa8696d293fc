import { Failure } from '../../domain/failure.ts';
import type { ConversationReconciler } from './conversation-reconciler.ts';
import { checkOwned, conversationNotFound, getConversation, type ConversationView, type GetConversationDeps } from './get-conversation.ts';

export interface AnswerPermissionDeps extends GetConversationDeps {
  readonly reconciler: ConversationReconciler;
}

/**
 * Answers the permission that the agent asks for. Throws `conversation_not_found`, `permission_not_found` (the agent does not
 * wait for it, or no longer), `invalid_request` (no such option) or `store_unavailable`.
 */
export async function answerPermission(
  deps: AnswerPermissionDeps,
  ownerId: string,
  id: string,
  permissionId: string,
  optionId: string,
): Promise<ConversationView> {
  const { reconciler } = deps;
  const written = await reconciler.records.change(id, (conversation) => {
    checkOwned(conversation, ownerId);
    const { permission } = conversation;
    if (permission?.permissionId !== permissionId) throw new Failure('permission_not_found', { id: permissionId });
    checkOffered(permission.options.map((option) => option.optionId), optionId);
    return {
      to: { permission: null, executionStatus: 'running' },
      actor: 'user',
      reason: null,
      events: [{ kind: 'permission_answered', data: { permissionId, optionId } }],
    };
  });
  if (written === null) throw conversationNotFound(id);
  reconciler.answered(id, permissionId, optionId);
  return await getConversation(deps, ownerId, id);
}

function checkOffered(offered: readonly string[], optionId: string): void {
  if (offered.includes(optionId)) return;
  const msg = `must be one of the options that the agent offers: ${offered.join(', ')}`;
  throw new Failure('invalid_request', { problems: [{ loc: ['body', 'option_id'], msg, type: 'unknown_option' }] });
}
