import type { ChangeList, StartPoint } from '../../domain/change.ts';
import type { Conversation } from '../../domain/conversation.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import { keptList, readOrKept } from './kept-changes.ts';
import type { Publication } from './publish-changes.ts';
import { type ChangeDeps, inWorkTree, snapshotFailure } from './conversation-work-tree.ts';

/** The differences between a conversation's work tree and its start point. */
export interface Changes extends ChangeList {
  readonly startPoint: StartPoint;
  /** When the changes were kept. Null if they were read from the work tree. */
  readonly keptAt: number | null;
  readonly publications: readonly Publication[];
}

/**
 * Returns the changes of the conversation. If its sandbox does not run, or it was archived with them, returns those that were kept last.
 * Throws `conversation_not_found`, `conversation_changes_unavailable`, `sandbox_not_found`, `sandbox_not_running`, `runtime_unavailable`
 * or `runtime_timeout`.
 */
export async function listChanges(deps: ChangeDeps, scope: OwnerScope, id: string, signal: AbortSignal): Promise<Changes> {
  return await readOrKept<Changes>(deps, scope, id, {
    read: async (workTree) => {
      const { startPoint, conversation } = workTree;
      try {
        const list = await inWorkTree(deps, workTree, (request) => deps.checkouts.listChanges(request, signal));
        return { ...list, startPoint, keptAt: null, publications: publicationsOf(conversation) };
      } catch (error) {
        throw snapshotFailure(deps, id, error);
      }
    },
    kept: (kept, startPoint, conversation) => (
      { ...keptList(id, kept), startPoint, keptAt: kept.keptAt, publications: publicationsOf(conversation) }
    ),
  });
}

function publicationsOf({ publications, pullRequests }: Conversation): Publication[] {
  return Object.entries(publications).map(([branch, commit]) => ({ branch, commit, pullRequest: pullRequests[branch] ?? null }));
}
