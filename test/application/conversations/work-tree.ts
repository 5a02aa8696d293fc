import { text } from 'node:stream/consumers';
import type { FileChange } from '../../../src/domain/change.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import type { RepositoryCheckouts } from '../../../src/ports/repository-checkouts.ts';
import { SnapshotRefusal } from '../../../src/ports/work-tree-snapshot.ts';
import { createReady } from './support.ts';
import { said, until } from './world.ts';

export const start = { commit: 'c0ffee', branch: 'main' };

export function fileAt(path: string, changes: Partial<FileChange> = {}): FileChange {
  const file = { path, status: 'modified', oldPath: null, oldMode: '100644', mode: '100644', binary: false, added: 3, removed: 1, committed: false } as const;
  return { ...file, ...changes };
}

/** A work tree that the test changes. `take` is called for each snapshot, and may refuse it. */
function createWorkTree() {
  const tree = { files: [] as FileChange[], taken: 0, complete: true, take: async (_signal: AbortSignal): Promise<void> => {}, patchOf: (file: FileChange) => `diff --git a/${file.path} b/${file.path}\n+x\n` };
  const takeSnapshot: RepositoryCheckouts['takeSnapshot'] = async ({ run }, signal) => {
    tree.taken += 1;
    await (await run(['git'], signal)).kill();
    await tree.take(signal);
    const files = [...tree.files];
    return {
      tree: JSON.stringify(files), head: start.commit, complete: tree.complete,
      commits: async () => [],
      files: async () => files,
      patch: () => new Blob(files.map((file) => tree.patchOf(file))).stream(),
      commit: async () => 'made',
      push: async () => {},
      [Symbol.asyncDispose]: async () => {},
    };
  };
  const listChanges: RepositoryCheckouts['listChanges'] = async (request, signal) => {
    await using snapshot = await takeSnapshot(request, signal);
    return { head: snapshot.head, complete: snapshot.complete, commits: [], files: await snapshot.files(signal) };
  };
  return { tree, checkouts: { takeSnapshot, listChanges } };
}

/** A conversation whose agent has a repository. Its work tree is what the test says. */
export async function createWorking() {
  const { tree, checkouts } = createWorkTree();
  const w = await createReady({ checkouts }, { selectedRepository: 'acme/shop' });
  /** Lets the agent work, and waits until the turn is over. */
  const turn = async (...files: readonly FileChange[]): Promise<void> => {
    tree.files = [...files];
    await w.conversations.send('me', w.id, said('work'));
    await until(async () => (await w.record()).queue.length === 0);
    await w.conversationReconciler.reconcile(w.id);
  };
  const list = () => w.conversations.changes('me', w.id, neverAborts);
  const patch = async (path: string | null = null) => await text(await w.conversations.patch('me', w.id, path, neverAborts));
  const archive = async () => {
    await w.conversations.update('me', w.id, { archived: true });
    return await w.conversationReconciler.reconcile(w.id);
  };
  return { ...w, tree, turn, list, patch, archive };
}

export async function refuse(): Promise<never> {
  return await Promise.reject(new SnapshotRefusal({ code: 'snapshot_damaged' }));
}
