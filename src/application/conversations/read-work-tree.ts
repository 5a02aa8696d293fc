import { Failure, isFailureOf } from '../../domain/failure.ts';
import type { Caller } from '../../domain/principal.ts';
import { withRecordFailures } from '../sandboxes/sandbox-records.ts';
import { getVisibleConversation } from './conversation-records.ts';
import { type ChangeDeps, findWorkTree } from './conversation-work-tree.ts';

/**
 * Returns a tar of the conversation's work tree, including `.git` and ignored files. Names begin with the last segment of its path. The
 * sandbox may be running, frozen or stopped. Throws the failures of `listChanges`, and `file_not_found`. If the conversation is archived
 * and its sandbox deleted, that is `conversation_changes_unavailable`.
 */
export async function readWorkTree(
  deps: ChangeDeps, caller: Caller | null, id: string, signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const conversation = await getVisibleConversation(deps.store, caller, id);
  const { sandbox, directory } = await findWorkTree(deps, conversation).catch((error: unknown) => {
    if (conversation.archivedAt === null || !isFailureOf(error, 'sandbox_not_found')) throw error;
    throw new Failure('conversation_changes_unavailable', { id, reason: { code: 'conversation_archived' } });
  });
  return await withRecordFailures(sandbox, () => deps.runtime.getFiles(sandbox.instanceId, directory, signal));
}
