import { Failure } from '../../domain/failure.ts';
import type { Caller } from '../../domain/principal.ts';
import type { WorkTreeSnapshot } from '../../ports/work-tree-snapshot.ts';
import { getVisibleConversation } from './conversation-records.ts';
import { keptPatch, readOrKept } from './kept-changes.ts';
import { type ChangeDeps, type ConversationWorkTree, snapshotFailure, takeSnapshot } from './conversation-work-tree.ts';

/**
 * Returns the changes of all files, or of one file, as a patch for `git apply --binary`. The stream must be read to its end or cancelled.
 * Throws the failures of `listChanges`, and `file_not_found` if the file has no changes.
 */
export async function readPatch(
  deps: ChangeDeps, caller: Caller | null, id: string, path: string | null, signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const conversation = await getVisibleConversation(deps.store, caller, id);
  const read = (workTree: ConversationWorkTree) => readPatchOf(deps, workTree, path, signal);
  return await readOrKept(deps, conversation, read, (kept) => ReadableStream.from([keptPatch(id, kept, path)]));
}

async function readPatchOf(
  deps: ChangeDeps, workTree: ConversationWorkTree, path: string | null, signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  try {
    await using cleanup = new AsyncDisposableStack();
    const snapshot = cleanup.use(await takeSnapshot(deps, workTree, signal));
    const patch = snapshot.patch(await pathsOf(snapshot, path, signal), signal);
    const afterwards = cleanup.move();
    const dispose = (): Promise<void> => afterwards.disposeAsync();
    return patch.pipeThrough(new TransformStream({ flush: dispose, cancel: dispose }));
  } catch (error) {
    throw snapshotFailure(deps, workTree.conversation.id, error);
  }
}

/**
 * A renamed file is found by its new path, and its patch names the old one too. A path that is not UTF-8 is listed with the replacement
 * character, by which git would not find the file.
 */
async function pathsOf(snapshot: WorkTreeSnapshot, path: string | null, signal: AbortSignal): Promise<readonly string[] | null> {
  if (path === null) return null;
  const file = (await snapshot.files(signal)).find((one) => one.path === path);
  if (file === undefined || path.includes('\ufffd')) throw new Failure('file_not_found', { path });
  return file.oldPath === null ? [path] : [file.oldPath, path];
}
