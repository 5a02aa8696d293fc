import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { FileChange } from '../../src/domain/change.ts';
import type { Reason } from '../../src/domain/reason.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { type SnapshotRequest, SnapshotRefusal, type WorkTreeSnapshot } from '../../src/ports/work-tree-snapshot.ts';
import type { CheckoutCase, CheckoutStage } from './repository-checkouts-harness.ts';
import { executeIn, runGit, type WorkTree } from './work-tree.ts';

const lines = Array.from({ length: 20 }, (_, index) => `line ${index}\n`).join('');
export const description = {
  commits: [{
    id: 'first',
    at: 1_600_000_000,
    files: [
      ['edited', lines], ['deleted', 'gone\n'], ['moved', `${lines}moved\n`], ['run', '#!/bin/sh\n'], ['link', { link: 'edited' }], ['folder/kept', 'kept\n'],
      ['.gitignore', 'ignored/\n*.log\n'],
      // Git's check of the snapshot needs them, though they do not change.
      ['.gitattributes', '* text=auto\n'], ['folder/.gitattributes', 'kept -text\n'], ['folder/.gitmodules', '[submodule "a"]\n\tpath = a\n\turl = ./a\n'],
    ] as const,
  }],
};

const requestFor = ({ folder, commit }: WorkTree): SnapshotRequest => (
  { base: commit, run: (command) => executeIn(folder, command) }
);

/** Takes a snapshot. Checks that the list is the same without a snapshot. */
export async function take(
  { checkouts }: CheckoutStage, tree: WorkTree, foldersOfOthers: string | null = null,
): Promise<WorkTreeSnapshot> {
  const request = { ...requestFor(tree), foldersOfOthers };
  const snapshot = await checkouts.takeSnapshot(request, neverAborts);
  const { head, complete } = snapshot;
  const list = { head, complete, commits: await snapshot.commits(neverAborts), files: await snapshot.files(neverAborts) };
  assert.deepEqual(await checkouts.listChanges(request, neverAborts), list);
  return snapshot;
}

export async function reasonOf(promise: Promise<unknown>): Promise<Reason['code'] | null> {
  return (await refusalOf(promise)).code;
}

async function refusalOf(promise: Promise<unknown>): Promise<Reason> {
  const error = await promise.then(() => null, (error: unknown) => error);
  if (error instanceof SnapshotRefusal) return error.reason;
  throw new Error('expected a refusal', { cause: error });
}

const brief = ({ path, status, committed }: FileChange): string => `${path} ${status}${committed ? ' committed' : ''}`;

async function change({ folder }: WorkTree): Promise<void> {
  await writeFile(join(folder, 'edited'), `${lines}more\n`);
  await writeFile(join(folder, 'folder/new'), 'new\n');
  await rm(join(folder, 'deleted'));
  await chmod(join(folder, 'run'), 0o755);
  await rm(join(folder, 'link'));
  await symlink('/etc/passwd', join(folder, 'link'));
}

export const snapshotCases: readonly CheckoutCase[] = [
  [
    'a snapshot lists the files that differ from its base commit',
    async (stage) => {
      const tree = await stage.open(await stage.publish(description));
      await using same = await take(stage, tree);
      assert.deepEqual([await same.files(neverAborts), await same.commits(neverAborts), same.head, same.complete], [[], [], tree.commit, true]);
      await change(tree);
      await using changed = await take(stage, tree);
      const files = await changed.files(neverAborts);
      assert.deepEqual(files.map(brief), ['deleted deleted', 'edited modified', 'folder/new added', 'link modified', 'run mode_changed']);
      assert.deepEqual(files.map(({ oldMode, mode }) => [oldMode, mode]), [
        ['100644', null], ['100644', '100644'], [null, '100644'], ['120000', '120000'], ['100644', '100755'],
      ]);
      assert.deepEqual(await same.files(neverAborts), []);
    },
  ],
  [
    'a snapshot tells committed changes from uncommitted ones, and leaves out ignored files',
    async (stage) => {
      if (stage.traits.workTree === 'files') return;
      const source = await stage.publish(description);
      const tree = await stage.open(source);
      const { folder, git } = tree;
      await change(tree);
      await rename(join(folder, 'moved'), join(folder, 'folder/to here'));
      await writeFile(join(folder, 'binary'), new Uint8Array([0, 1, 2, 255]));
      await git('add', '-A');
      await git('commit', '-q', '-m', 'The first\n\nmore');
      await git('commit', '-q', '--allow-empty', '-m', 'The second');
      await writeFile(join(folder, 'run'), '#!/bin/sh\nexit 1\n');
      await writeFile(join(folder, 'söme "name"\n'), 'odd\n');
      await mkdir(join(folder, 'ignored'));
      await writeFile(join(folder, 'ignored/file'), 'x');
      const [index, status] = [await readFile(join(folder, '.git/index')), await git('status', '--porcelain')];
      const objects = await git('count-objects', '-v');

      await using snapshot = await take(stage, tree);
      assert.deepEqual(await readFile(join(folder, '.git/index')), index);
      assert.equal(await git('count-objects', '-v'), objects);
      assert.equal(await git('status', '--porcelain'), status);
      assert.equal(snapshot.head, await git('rev-parse', 'HEAD'));
      assert.deepEqual((await snapshot.commits(neverAborts)).map(({ subject, authorEmail }) => [subject, authorEmail]), [['The second', 'a@example.com'], ['The first', 'a@example.com']]);
      const files = await snapshot.files(neverAborts);
      assert.deepEqual(files.map(brief), [
        'binary added committed', 'deleted deleted committed', 'edited modified committed', 'folder/new added committed',
        'folder/to here renamed committed', 'link modified committed', 'run modified', 'söme "name"\n added',
      ]);
      const { path: _, status: __, committed: ___, ...binary } = files[0] as FileChange;
      assert.deepEqual(binary, { oldPath: null, oldMode: null, mode: '100644', binary: true, added: null, removed: null });
      assert.deepEqual([files[2]?.added, files[2]?.removed, files[4]?.oldPath, files[6]?.mode], [1, 0, 'moved', '100755']);

      // The patch gives a clone the same tree as git has here.
      const clone = await stage.open(source);
      await writeFile(join(clone.folder, '.git/whole.patch'), await text(snapshot.patch(null, neverAborts)));
      await clone.git('status');
      await clone.git('apply', '--binary', '--index', '.git/whole.patch');
      await git('add', '-A');
      assert.equal(await clone.git('write-tree'), await git('write-tree'));
      const one = await text(snapshot.patch(['moved', 'folder/to here'], neverAborts));
      assert.match(one, /^diff --git a\/moved b\/folder\/to here\nsimilarity index 100%\nrename from moved\nrename to folder\/to here\n$/u);
    },
  ],
  [
    'a snapshot lists a merge of a branch that began before the base commit',
    async (stage) => {
      if (stage.traits.workTree === 'files') return;
      // The base commit no longer has the attributes file of the branch.
      const attributes = ['* text=auto\n', '* -text\n', null];
      const commits = ['one', 'two', 'three'].map((id, index) => ({
        id, at: 1_600_000_000 + index, files: [[id, `${id}\n`], ['.gitattributes', attributes[index] ?? null]] as const,
      }));
      const tree = await stage.open(await stage.publish({ commits }));
      await tree.git('checkout', '-q', '-b', 'side', 'HEAD~2');
      await writeFile(join(tree.folder, 'side'), 'side\n');
      await tree.git('add', '-A');
      await tree.git('commit', '-q', '-m', 'side');
      await tree.git('checkout', '-q', 'main');
      await tree.git('merge', '-q', '--no-ff', '-m', 'merge', 'side');
      await using snapshot = await take(stage, tree);
      assert.deepEqual((await snapshot.commits(neverAborts)).map(({ subject }) => subject), ['merge', 'side']);
      assert.deepEqual((await snapshot.files(neverAborts)).map(brief), ['side added committed']);
    },
  ],
  [
    'a snapshot leaves out the folders of others, whatever git in the work tree does with them',
    async (stage) => {
      const tree = await stage.open(await stage.publish(description));
      const others = ['conv-1', 'conv-2', 'conv-3', 'conv-a', 'conv-b'];
      for (const other of [...others, 'conv-12']) {
        await mkdir(join(tree.folder, other));
        await writeFile(join(tree.folder, other, 'file'), 'of another\n');
      }
      if (stage.traits.workTree === 'git') {
        for (const other of others.slice(0, 3)) await runGit(join(tree.folder, other), ['init', '-q']);
        for (const other of others.slice(1, 3)) await runGit(join(tree.folder, other), ['commit', '-q', '--allow-empty', '-m', 'of another']);
        await writeFile(join(tree.folder, '.gitignore'), '*\n!*/\n!conv-0\n!conv-12/file\n');
        await tree.git('add', '-f', 'conv-2', 'conv-a');
        await tree.git('commit', '-q', '-m', 'with two others');
      }
      await writeFile(join(tree.folder, 'conv-0'), 'a file with such a name\n');
      await using snapshot = await take(stage, tree, 'conv-[a-z0-9]');
      const paths = (await snapshot.files(neverAborts)).map(({ path }) => path);
      assert.deepEqual(paths, stage.traits.workTree === 'git' ? ['.gitignore', 'conv-0', 'conv-12/file'] : ['conv-0', 'conv-12/file']);
      assert.equal(snapshot.complete, true);
      if (stage.traits.workTree === 'files') return;

      const change = { author: { name: 'Ann', email: 'ann@example.com' }, message: 'Work\n', at: 0 };
      assert.notEqual(await snapshot.commit(change, neverAborts), snapshot.head);
    },
  ],
  [
    'a snapshot reads an index that is split into two files',
    async (stage) => {
      if (stage.traits.workTree === 'files') return;
      const tree = await stage.open(await stage.publish(description));
      await tree.git('config', 'core.splitIndex', 'true');
      await tree.git('update-index', '--split-index');
      await change(tree);
      await using snapshot = await take(stage, tree);
      assert.equal((await snapshot.files(neverAborts)).length, 5);
    },
  ],
  [
    'a snapshot has files with other line ends than git stores, and fails with snapshot_failed if a filter fails',
    async (stage) => {
      if (stage.traits.workTree === 'files') return;
      const tree = await stage.open(await stage.publish(description));
      await tree.git('config', 'core.safecrlf', 'true');
      await writeFile(join(tree.folder, 'edited'), lines.replaceAll('\n', '\r\n') + 'more\r\n');
      await using snapshot = await take(stage, tree);
      assert.deepEqual((await snapshot.files(neverAborts)).map(({ path, added, removed }) => [path, added, removed]), [['edited', 1, 0]]);
      await writeFile(join(tree.folder, '.git/attributes'), 'edited filter=missing\n');
      await tree.git('config', 'core.attributesFile', '.git/attributes');
      await tree.git('config', 'filter.missing.clean', 'false');
      await tree.git('config', 'filter.missing.required', 'true');
      for (const read of [() => take(stage, tree), () => stage.checkouts.listChanges(requestFor(tree), neverAborts)]) {
        const reason = await refusalOf(read());
        assert.equal(reason.code === 'snapshot_failed' && reason.exitCode, 128);
        assert.match(reason.code === 'snapshot_failed' ? (reason.output ?? '') : '', /clean filter 'missing' failed$/u);
      }
    },
  ],
  [
    'a snapshot lists all files if the repository was empty',
    async (stage) => {
      const tree = await stage.open(await stage.publish({ commits: [] }));
      await writeFile(join(tree.folder, 'first'), 'first\n');
      await using snapshot = await take(stage, tree);
      assert.deepEqual((await snapshot.files(neverAborts)).map(brief), ['first added']);
      if (stage.traits.workTree === 'files') return;
      assert.equal(snapshot.head, null);
      await tree.git('add', '-A');
      await tree.git('commit', '-q', '-m', 'The first');
      await using committed = await take(stage, tree);
      assert.deepEqual((await committed.files(neverAborts)).map(brief), ['first added committed']);
      assert.equal((await committed.commits(neverAborts)).length, 1);
    },
  ],
  [
    'a snapshot fails with start_commit_missing if the base commit is gone',
    async (stage) => {
      if (stage.traits.workTree === 'files') return;
      const tree = await stage.open(await stage.publish(description));
      await rm(join(tree.folder, '.git'), { recursive: true });
      assert.equal(await reasonOf(take(stage, tree)), 'start_commit_missing');
      assert.equal(await reasonOf(stage.checkouts.listChanges(requestFor(tree), neverAborts)), 'start_commit_missing');
      await runGit(tree.folder, ['init', '-q']);
      assert.equal(await reasonOf(take(stage, tree)), 'start_commit_missing');
    },
  ],
  [
    "a snapshot fails with the error of its command, or with the signal's reason",
    async (stage) => {
      const { commit } = await stage.open(await stage.publish(description));
      const error = new Error('no sandbox');
      await assert.rejects(stage.checkouts.takeSnapshot({ base: commit, run: () => Promise.reject(error) }, neverAborts), error);
      const left = new AbortController();
      const run = async () => {
        left.abort(error);
        return await executeIn('/', ['sleep', '60']);
      };
      await assert.rejects(stage.checkouts.takeSnapshot({ base: commit, run }, left.signal), error);
    },
  ],
];
