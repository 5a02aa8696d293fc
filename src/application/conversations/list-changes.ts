import type { ChangeList, StartPoint } from '../../domain/change.ts';
import type { Caller } from '../../domain/principal.ts';
import { getVisibleConversation, ofBranch } from './conversation-records.ts';
import { keptList, readOrKept } from './kept-changes.ts';
import type { Publication } from './publish-changes.ts';
import { type ChangeDeps, type ConversationWorkTree, getStartPoint, inWorkTree, snapshotFailure } from './conversation-work-tree.ts';

interface ListedChanges extends ChangeList {
  /** When the changes were kept. Null if they were read from the work tree. */
  readonly keptAt: number | null;
}

/** The differences between a conversation's work tree and its start point. */
export interface Changes extends ListedChanges {
  readonly startPoint: StartPoint;
  readonly publications: readonly Publication[];
}

/**
 * Returns the changes of the conversation. If its sandbox does not run, or it was archived with them, returns those that were kept last.
 * Throws `conversation_not_found`, `conversation_changes_unavailable`, `sandbox_not_found`, `sandbox_not_running`, `runtime_unavailable`
 * or `runtime_timeout`.
 */
export async function listChanges(deps: ChangeDeps, caller: Caller | null, id: string, signal: AbortSignal): Promise<Changes> {
  const conversation = await getVisibleConversation(deps.store, caller, id);
  const { publications, pullRequests } = conversation;
  const read = async (workTree: ConversationWorkTree): Promise<ListedChanges> => {
    try {
      return { ...(await inWorkTree(deps, workTree, (request) => deps.checkouts.listChanges(request, signal))), keptAt: null };
    } catch (error) {
      throw snapshotFailure(deps, id, error);
    }
  };
  return {
    ...(await readOrKept(deps, conversation, read, (kept) => ({ ...keptList(id, kept), keptAt: kept.keptAt }))),
    startPoint: getStartPoint(conversation),
    publications: Object.entries(publications).map(([branch, commit]) => (
      { branch, commit, pullRequest: ofBranch(pullRequests, branch) ?? null }
    )),
  };
}
