import type { OwnerScope } from '../../domain/principal.ts';
import { withRecordFailures } from '../sandboxes/sandbox-records.ts';
import { getVisibleConversation } from './conversation-records.ts';
import { type ChangeDeps, findWorkTree } from './conversation-work-tree.ts';

/**
 * Returns a tar of the conversation's work tree, including `.git` and ignored files. Names begin with the last segment of its path. The
 * sandbox may be running, frozen or stopped. Throws the failures of `listChanges`, and `file_not_found`.
 */
export async function readWorkTree(
  deps: ChangeDeps, scope: OwnerScope, id: string, signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const { sandbox, directory } = await findWorkTree(deps, await getVisibleConversation(deps.store, scope, id));
  return await withRecordFailures(sandbox, () => deps.runtime.getFiles(sandbox.instanceId, directory, signal));
}
