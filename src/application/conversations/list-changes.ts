import type { AgentCommit, FileChange, StartPoint } from '../../domain/change.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import { type ChangeDeps, findWorkTree, withSnapshot } from './take-snapshot.ts';

/** How the work tree of a conversation differs from where it began. */
export interface Changes {
  readonly startPoint: StartPoint;
  readonly head: string | null;
  /** False if git could not read some files. */
  readonly complete: boolean;
  readonly commits: readonly AgentCommit[];
  readonly files: readonly FileChange[];
}

/**
 * Returns what was changed in the conversation: the commits since its start, and all files that differ. Throws `conversation_not_found`,
 * `conversation_changes_unavailable`, `sandbox_not_found`, `sandbox_not_running`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function listChanges(deps: ChangeDeps, scope: OwnerScope, id: string, signal: AbortSignal): Promise<Changes> {
  const workTree = await findWorkTree(deps, scope, id);
  return await withSnapshot(deps, workTree, signal, async (snapshot) => {
    const [commits, files] = await Promise.all([snapshot.commits(signal), snapshot.files(signal)]);
    return { startPoint: workTree.startPoint, head: snapshot.head, complete: snapshot.complete, commits, files };
  });
}
