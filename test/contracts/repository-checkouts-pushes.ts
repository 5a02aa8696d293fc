import assert from 'node:assert/strict';
import { chmod, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { CheckoutCase } from './repository-checkouts-harness.ts';
import { description, reasonOf, take } from './repository-checkouts-snapshots.ts';

export const pushCases: readonly CheckoutCase[] = [
  [
    'a push creates or updates the branch with all changes, and fails with branch_moved if it has moved',
    async (stage) => {
      const source = await stage.publish(description);
      const tree = await stage.open(source);
      const request = { provider: source.provider, repository: source.repository, remote: source.remote, branch: 'skep/one' };
      const change = { author: { name: 'Ann', email: 'ann@example.com' }, message: 'Work\n', at: 1_700_000_000_000 };
      const find = (): Promise<{ commit: string | null; isDefault: boolean }> => stage.checkouts.findBranch(request, neverAborts);
      assert.deepEqual(await find(), { commit: null, isDefault: false });
      assert.equal((await stage.checkouts.findBranch({ ...request, branch: 'main' }, neverAborts)).isDefault, true);
      {
        await using same = await take(stage, tree);
        assert.equal(await same.commit(change, neverAborts), tree.commit);
      }
      await writeFile(join(tree.folder, 'folder/new'), 'new\n');
      await chmod(join(tree.folder, 'run'), 0o755);
      await using snapshot = await take(stage, tree);
      const commit = await snapshot.commit(change, neverAborts);
      assert.equal(await snapshot.commit(change, neverAborts), commit);
      assert.equal(await reasonOf(snapshot.push({ request, commit, expected: 'a'.repeat(40) }, neverAborts)), 'branch_moved');
      await snapshot.push({ request, commit, expected: null }, neverAborts);
      assert.deepEqual(await find(), { commit, isDefault: false });
      await writeFile(join(tree.folder, 'folder/new'), 'newer\n');
      await using later = await take(stage, tree);
      const next = await later.commit(change, neverAborts);
      assert.equal(await reasonOf(later.push({ request, commit: next, expected: null }, neverAborts)), 'branch_moved');
      await later.push({ request, commit: next, expected: commit }, neverAborts);
      assert.equal((await find()).commit, next);
      if (stage.traits.workTree === 'files') return;

      const pushed = await stage.open(source, 'skep/one');
      await tree.git('add', '-A');
      assert.equal(await pushed.git('rev-parse', 'HEAD^{tree}'), await tree.git('write-tree'));
      assert.equal(await pushed.git('log', '--format=%P %an %ae %cn %ct %s'), `${tree.commit} Ann ann@example.com Ann 1700000000 Work\n A a@example.com C 1600000000 first`);
      await tree.git('commit', '-q', '-m', 'All of it');
      await using committed = await take(stage, tree);
      assert.equal(await committed.commit(change, neverAborts), await tree.git('rev-parse', 'HEAD'));
    },
  ],
  [
    'an empty repository gets no commit without files',
    async (stage) => {
      const tree = await stage.open(await stage.publish({ commits: [] }));
      const change = { author: { name: 'Ann', email: 'ann@example.com' }, message: 'Work\n', at: 0 };
      await using empty = await take(stage, tree);
      assert.equal(await reasonOf(empty.commit(change, neverAborts)), 'nothing_to_publish');
      await writeFile(join(tree.folder, 'new'), 'new\n');
      await using changed = await take(stage, tree);
      assert.notEqual(await changed.commit(change, neverAborts), '');
    },
  ],
  [
    'a push of a work tree without changes moves the branch back to the base commit',
    async (stage) => {
      const source = await stage.publish(description);
      const tree = await stage.open(source);
      const request = { provider: source.provider, repository: source.repository, remote: source.remote, branch: 'skep/one' };
      const change = { author: { name: 'Ann', email: 'ann@example.com' }, message: 'Work\n', at: 0 };
      await writeFile(join(tree.folder, 'folder/new'), 'new\n');
      await using changed = await take(stage, tree);
      const commit = await changed.commit(change, neverAborts);
      await changed.push({ request, commit, expected: null }, neverAborts);
      await rm(join(tree.folder, 'folder/new'));
      await using reverted = await take(stage, tree);
      const base = await reverted.commit(change, neverAborts);
      assert.equal(base, tree.commit);
      await reverted.push({ request, commit: base, expected: commit }, neverAborts);
      assert.equal((await stage.checkouts.findBranch(request, neverAborts)).commit, base);
    },
  ],
  [
    'a snapshot can be pushed after its original branch has moved on',
    async (stage) => {
      if (stage.traits.workTree === 'files') return;
      const source = await stage.publish(description);
      const tree = await stage.open(source);
      await writeFile(join(tree.folder, 'folder/new'), 'new\n');
      const later = { id: 'later', at: 1_600_000_100, files: [['later', 'later\n'] as const] };
      const moved = await stage.publish({ commits: [...description.commits, later] });
      const request = { provider: moved.provider, repository: moved.repository, remote: moved.remote, branch: 'skep/one' };
      await using snapshot = await take(stage, tree);
      const commit = await snapshot.commit({ author: { name: 'Ann', email: 'ann@example.com' }, message: 'Work\n', at: 0 }, neverAborts);
      await snapshot.push({ request, commit, expected: null }, neverAborts);
      assert.equal((await stage.open(moved, 'skep/one')).files['folder/new'], 'new\n');
    },
  ],
];
