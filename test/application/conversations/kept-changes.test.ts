import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import type { FileChange } from '../../../src/domain/change.ts';
import type { RepositoryCheckouts } from '../../../src/ports/repository-checkouts.ts';
import { SnapshotRefusal } from '../../../src/ports/work-tree-snapshot.ts';
import { createReady, failureOf } from './support.ts';
import { said, told, until } from './world.ts';

const never = new AbortController().signal;
const start = { commit: 'c0ffee', branch: 'main' };

function fileAt(path: string, changes: Partial<FileChange> = {}): FileChange {
  const file = { path, status: 'modified', oldPath: null, oldMode: '100644', mode: '100644', binary: false, added: 3, removed: 1, committed: false } as const;
  return { ...file, ...changes };
}

/** A work tree that the test changes. `take` is called for each snapshot, and may refuse it. */
function createWorkTree() {
  const tree = { files: [] as FileChange[], taken: 0, take: async (_signal: AbortSignal): Promise<void> => {}, patchOf: (file: FileChange) => `diff --git a/${file.path} b/${file.path}\n+x\n` };
  const takeSnapshot: RepositoryCheckouts['takeSnapshot'] = async ({ run }, signal) => {
    tree.taken += 1;
    await (await run(['git'], signal)).kill();
    await tree.take(signal);
    const files = [...tree.files];
    return {
      tree: JSON.stringify(files), head: start.commit, complete: true,
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

async function createWorking() {
  const { tree, checkouts } = createWorkTree();
  const w = await createReady({ checkouts }, { selectedRepository: 'acme/shop' });
  /** Lets the agent work, and waits until the turn is over. */
  const turn = async (...files: readonly FileChange[]): Promise<void> => {
    tree.files = [...files];
    await w.conversations.send('me', w.id, said('work'));
    await until(async () => (await w.record()).queue.length === 0);
    await w.conversationDriver.reconcile(w.id);
  };
  const list = () => w.conversations.changes('me', w.id, never);
  const patch = async (path: string | null = null) => await text(await w.conversations.patch('me', w.id, path, never));
  const archive = async () => {
    await w.conversations.update('me', w.id, { archived: true });
    return await w.conversationDriver.reconcile(w.id);
  };
  return { ...w, tree, turn, list, patch, archive };
}

describe('after a turn', () => {
  test('an event has the counts of files and lines, if the turn changed the work tree', async () => {
    const w = await createWorking();
    await w.turn();
    await w.turn(fileAt('a'), fileAt('b', { binary: true, added: null, removed: null }));
    await w.turn(fileAt('a'), fileAt('b', { binary: true, added: null, removed: null }));
    await w.turn();
    const log = await w.log();
    expect(told(log, 'turn_ended', 'work_tree_changed').map(({ kind, ...data }) => ('files' in data ? data : kind))).toEqual([
      'turn_ended',
      'turn_ended', { files: 2, linesAdded: 3, linesRemoved: 1 },
      'turn_ended',
      'turn_ended', { files: 0, linesAdded: 0, linesRemoved: 0 },
    ]);
    expect(log.find(({ kind }) => kind === 'work_tree_changed')).toMatchObject({ actor: 'agent', conversationId: w.id, reason: null });
  });

  test('a failed snapshot does not fail the turn, and a slow one delays the next by 10 seconds at most', async () => {
    const w = await createWorking();
    w.tree.take = async () => await Promise.reject(new SnapshotRefusal({ code: 'git_missing' }));
    await w.turn(fileAt('a'));
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'idle', statusReason: null } });

    w.tree.take = async (signal) => await new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error('ended')));
    });
    const { taken } = w.tree;
    await w.conversations.send('me', w.id, said('first'));
    await until(() => w.tree.taken > taken);
    await w.conversations.send('me', w.id, said('second'));
    expect(w.handed).not.toContain('second');
    w.tree.take = async () => {};
    w.clock.advance(10_000);
    await w.conversationDriver.reconcile(w.id);
    expect(w.handed).toContain('second');
    expect(told(await w.log(), 'work_tree_changed')).toEqual([{ kind: 'work_tree_changed', files: 1, linesAdded: 3, linesRemoved: 1 }]);
  });
});

describe('while the sandbox does not run', () => {
  test('list and patch are the kept ones, and the sandbox is not resumed', async () => {
    const w = await createWorking();
    const files = [
      fileAt('a'), fileAt('link', { mode: '120000' }), fileAt('c', { status: 'renamed', oldPath: 'b' }), fileAt('new', { status: 'added', oldMode: null }),
    ];
    // A file that became a link has two parts in a patch.
    w.tree.patchOf = ({ path }) => `diff --git a/${path} b/${path}\n+diff --git of ${path}\n`.repeat(path === 'link' ? 2 : 1);
    await w.turn(...files);
    const whole = files.map((file) => w.tree.patchOf(file));
    expect(await w.list()).toEqual({ startPoint: start, keptAt: null, head: 'c0ffee', complete: true, commits: [], files, publications: [] });
    for (const kind of ['freeze', 'stop'] as const) {
      await w.sandboxes.pause('me', w.sandboxId, kind);
      expect(await w.list()).toMatchObject({ keptAt: expect.any(Number), files });
      expect(await w.patch()).toBe(whole.join(''));
      for (const [index, { path }] of files.entries()) expect(await w.patch(path)).toBe(whole[index]);
      expect(await failureOf(w.patch('b'))).toMatchObject({ code: 'file_not_found' });
    }
    expect(await w.view()).toMatchObject({ sandboxStatus: 'PAUSED' });
    await w.sandboxes.delete('me', w.sandboxId);
    expect(await w.list()).toMatchObject({ keptAt: expect.any(Number), files });
  });

  test('the list is from just before the pause, even without a turn', async () => {
    const w = await createWorking();
    w.tree.files = [fileAt('by hand')];
    await w.sandboxes.pause('me', w.sandboxId);
    expect((await w.list()).files).toMatchObject([{ path: 'by hand' }]);
    await w.sandboxes.resume('me', w.sandboxId);
    w.tree.take = async () => await Promise.reject(new SnapshotRefusal({ code: 'git_missing' }));
    await w.sandboxes.pause('me', w.sandboxId);
    expect(await w.list()).toMatchObject({ keptAt: expect.any(Number), files: [{ path: 'by hand' }] });
  });

  test('a patch that was too large to keep fails, but the list is returned', async () => {
    const w = await createWorking();
    w.tree.patchOf = () => 'x'.repeat(3 * 2 ** 20);
    await w.turn(fileAt('a'), fileAt('b'));
    await w.sandboxes.pause('me', w.sandboxId);
    expect((await w.list()).files).toHaveLength(2);
    expect(await failureOf(w.patch())).toMatchObject({ code: 'conversation_changes_unavailable', context: { reason: { code: 'too_large' } } });
  });

  test('the list fails with `sandbox_not_running` if nothing was kept', async () => {
    const w = await createWorking();
    w.tree.take = async () => await Promise.reject(new SnapshotRefusal({ code: 'git_missing' }));
    await w.turn(fileAt('a'));
    expect(await failureOf(w.list())).toMatchObject({ code: 'conversation_changes_unavailable', context: { reason: { code: 'git_missing' } } });
    await w.sandboxes.pause('me', w.sandboxId);
    expect(await failureOf(w.list())).toMatchObject({ code: 'sandbox_not_running' });
  });
});

describe('an archived conversation', () => {
  test('has its changes as they were when it was archived', async () => {
    const w = await createWorking();
    await w.turn(fileAt('a'));
    w.tree.files = [fileAt('b')];
    expect(await w.archive()).toMatchObject({ releasedAt: expect.any(Number), statusReason: null });
    expect(await w.view()).toMatchObject({ sandboxStatus: 'MISSING' });
    expect(await w.list()).toMatchObject({ keptAt: expect.any(Number), startPoint: start, files: [{ path: 'b' }] });
    expect(await w.patch()).toBe('diff --git a/b b/b\n+x\n');
  });

  test('cannot be published', async () => {
    const w = await createWorking();
    await w.turn(fileAt('a'));
    await w.archive();
    const request = { branch: 'topic', commitMessage: null, userId: 'me', pullRequest: null };
    expect(await failureOf(w.conversations.publish('me', w.id, request, never))).toMatchObject({
      code: 'conversation_publish_refused', context: { id: w.id, branch: 'topic', reason: { code: 'conversation_archived' } },
    });
  });

  test('has the changes of its last turn if its sandbox was paused or deleted', async () => {
    for (const end of ['pause', 'delete'] as const) {
      const w = await createWorking();
      await w.turn(fileAt('a'));
      await w.sandboxes[end]('me', w.sandboxId);
      expect(await w.archive()).toMatchObject({ releasedAt: expect.any(Number), statusReason: null });
      expect((await w.list()).files).toMatchObject([{ path: 'a' }]);
    }
  });

  test('reports why it has no changes', async () => {
    const w = await createWorking();
    w.tree.take = async () => await Promise.reject(new SnapshotRefusal({ code: 'git_missing' }));
    const reason = { code: 'changes_not_kept', cause: { code: 'git_missing' } };
    expect(await w.archive()).toMatchObject({ releasedAt: expect.any(Number), statusReason: reason });
    expect(await failureOf(w.list())).toMatchObject({ code: 'conversation_changes_unavailable', context: { reason } });

    const lost = await createWorking();
    await lost.sandboxes.delete('me', lost.sandboxId);
    expect(await lost.archive()).toMatchObject({ statusReason: { code: 'changes_not_kept', cause: { failure: 'sandbox_not_found' } } });
    const without = await createReady();
    await without.conversations.update('me', without.id, { archived: true });
    expect(await failureOf(without.conversations.changes('me', without.id, never))).toMatchObject({ context: { reason: { code: 'no_repository' } } });
  });

  test('keeps its sandbox until its changes are kept, even if the process ends meanwhile', async () => {
    const w = await createWorking();
    w.tree.files = [fileAt('a')];
    const begun = Promise.withResolvers<void>();
    w.tree.take = async (signal) => {
      begun.resolve();
      await new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('ended')));
      });
    };
    const archiving = w.conversations.update('me', w.id, { archived: true });
    await begun.promise;
    await w.conversationDriver.close();
    await archiving;
    expect(await w.record()).toMatchObject({ archivedAt: expect.any(Number), releasedAt: null });
    w.tree.take = async () => {};
    const next = w.boot();
    await next.conversationDriver.reconcile(w.id);
    expect(await w.record()).toMatchObject({ releasedAt: expect.any(Number) });
    expect(await next.conversations.changes('me', w.id, never)).toMatchObject({ files: [{ path: 'a' }] });
  });
});
