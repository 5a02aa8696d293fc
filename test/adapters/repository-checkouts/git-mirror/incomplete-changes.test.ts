import { appendFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { RepositoryCheckouts } from '../../../../src/ports/repository-checkouts.ts';
import { runGit, type WorkTree } from '../../../contracts/work-tree.ts';
import { list, take } from './snapshot-support.ts';
import { createScene, open, temporaryFolder } from './support.ts';

let mirror: RepositoryCheckouts;
let tree: WorkTree;

beforeEach(async () => {
  const scene = await createScene();
  mirror = scene.mirror();
  tree = await open(mirror, scene.request);
});

/** Returns whether the changes are complete, and their paths. Checks that the list has the same. */
async function changesOf(): Promise<readonly [complete: boolean, paths: readonly string[]]> {
  await using snapshot = await take(mirror, tree);
  const files = await snapshot.files(neverAborts);
  expect(await list(mirror, tree)).toMatchObject({ complete: snapshot.complete, files });
  return [snapshot.complete, files.map(({ path }) => path)];
}

/** Commits a file on a new branch of the repository in the folder, and leaves the branch. */
async function commitOnBranch(folder: string): Promise<void> {
  await runGit(folder, ['checkout', '-q', '-b', 'agent/work']);
  await writeFile(join(folder, 'work'), 'work\n');
  await runGit(folder, ['add', '-A']);
  await runGit(folder, ['commit', '-q', '-m', 'work']);
  await runGit(folder, ['checkout', '-q', '-']);
}

describe('The changes of a work tree with a submodule', () => {
  const name = 'vendor/the lib';

  // The conversation starts from a commit that has the submodule, which has one of its own.
  beforeEach(async () => {
    const [lib, inner] = [await temporaryFolder(), await temporaryFolder()];
    for (const [folder, file] of [[inner, 'inner.txt'], [lib, 'lib.txt']] as const) {
      await runGit(folder, ['init', '-q']);
      await writeFile(join(folder, file), 'one\n');
      await writeFile(join(folder, '.gitignore'), 'ignored\n');
      if (folder === lib) await runGit(folder, ['-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', inner, 'inner']);
      await runGit(folder, ['add', '-A']);
      await runGit(folder, ['commit', '-q', '-m', 'one']);
    }
    // A tag of a commit that no branch has.
    await runGit(lib, ['tag', 'old', await runGit(lib, ['commit-tree', 'HEAD^{tree}', '-m', 'old'])]);
    await tree.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', lib, name);
    await tree.git('commit', '-q', '-m', 'with a submodule');
    tree = { ...tree, commit: await tree.git('rev-parse', 'HEAD') };
  });

  test('are complete if it is not touched', async () => {
    await writeFile(join(tree.folder, name, 'ignored'), 'x\n');
    expect(await changesOf()).toEqual([true, []]);
    await tree.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'update', '--init', '--recursive');
    expect(await changesOf()).toEqual([true, []]);
    await tree.git('submodule', '--quiet', 'deinit', '--force', name);
    expect(await changesOf()).toEqual([true, []]);
    await rm(join(tree.folder, name), { recursive: true });
    expect(await changesOf()).toEqual([true, [name]]);
  });

  test.each([
    ['a file of it is edited', () => appendFile(join(tree.folder, name, 'lib.txt'), 'fix\n')],
    ['an edited file of it is marked as unchanged', async () => {
      await runGit(join(tree.folder, name), ['update-index', '--assume-unchanged', 'lib.txt']);
      await appendFile(join(tree.folder, name, 'lib.txt'), 'fix\n');
    }],
    ['another branch of it has a commit', () => commitOnBranch(join(tree.folder, name))],
    ['it has a new file', () => writeFile(join(tree.folder, name, 'new'), 'new\n')],
    ['its own submodule, which is not initialised, has a file', () => writeFile(join(tree.folder, name, 'inner/new'), 'new\n')],
    ['it is not initialised and has a file', async () => {
      await tree.git('submodule', '--quiet', 'deinit', '--force', name);
      await writeFile(join(tree.folder, name, 'new'), 'new\n');
    }],
  ])('are not complete if %s', async (_, work) => {
    await work();
    expect(await changesOf()).toEqual([false, []]);
  });
});

describe('The changes of a work tree with files that git does not look at', () => {
  const odd = 'lib/\u00f6dd "name"\t\n';

  beforeEach(async () => {
    await mkdir(join(tree.folder, 'lib'));
    for (const file of ['one', 'two', 'lib/one', 'lib/two', odd]) await writeFile(join(tree.folder, file), 'one\n');
    await tree.git('add', '-A');
    await tree.git('commit', '-q', '-m', 'more files');
    tree = { ...tree, commit: await tree.git('rev-parse', 'HEAD') };
  });

  test.each(['--assume-unchanged', '--skip-worktree'])('have the edited ones with the mark %s', async (mark) => {
    await tree.git('update-index', mark, 'one', 'two', odd);
    expect(await changesOf()).toEqual([true, []]);
    for (const file of ['one', odd]) await appendFile(join(tree.folder, file), 'fix\n');
    await rm(join(tree.folder, 'lib/one'));
    const index = await readFile(join(tree.folder, '.git/index'));
    expect(await changesOf()).toEqual([true, ['lib/one', odd, 'one']]);
    expect(await readFile(join(tree.folder, '.git/index'))).toEqual(index);
  });

  test('have no deletions of files that a sparse checkout does not have, but its other files', async () => {
    await tree.git('sparse-checkout', 'set', '--cone', '--sparse-index');
    expect(await readdir(tree.folder)).not.toContain('lib');
    expect(await changesOf()).toEqual([true, []]);
    await rm(join(tree.folder, 'one'));
    await mkdir(join(tree.folder, 'lib'));
    for (const file of ['lib/new', 'lib/one']) await writeFile(join(tree.folder, file), 'new\n');
    expect(await changesOf()).toEqual([true, ['lib/new', 'lib/one', 'one']]);
  });

  test('have a deleted file that is marked as unchanged', async () => {
    await tree.git('update-index', '--assume-unchanged', 'one');
    await rm(join(tree.folder, 'one'));
    expect(await changesOf()).toEqual([true, ['one']]);
  });
});

describe('The changes of a work tree with work outside of its last commit', () => {
  test.each<[string, () => Promise<unknown>]>([
    ['another branch', () => commitOnBranch(tree.folder)],
    ['a branch that was merged with --squash', async () => {
      await commitOnBranch(tree.folder);
      await tree.git('merge', '-q', '--squash', 'agent/work');
      await tree.git('commit', '-q', '-m', 'squashed');
    }],
    ['a tag', async () => {
      await commitOnBranch(tree.folder);
      await tree.git('tag', '-a', '-m', 'one', 'v1', 'agent/work');
      await tree.git('branch', '-q', '-D', 'agent/work');
    }],
    ['another ref', async () => {
      await commitOnBranch(tree.folder);
      await tree.git('update-ref', 'refs/wip', 'agent/work');
      await tree.git('branch', '-q', '-D', 'agent/work');
    }],
    ['a stash', async () => {
      await writeFile(join(tree.folder, 'work'), 'work\n');
      await tree.git('stash', '-q', '-u');
    }],
    ['another work tree', async () => tree.git('worktree', 'add', '-q', '--detach', join(await temporaryFolder(), 'wt'))],
  ])('are not complete if it is in %s', async (_, work) => {
    await work();
    expect((await changesOf())[0]).toBe(false);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['merged', () => tree.git('merge', '-q', 'agent/work')],
    ['pushed', async () => {
      const remote = await temporaryFolder();
      await runGit(remote, ['init', '-q', '--bare']);
      await tree.git('remote', 'add', 'other', remote);
      await tree.git('push', '-q', 'other', 'agent/work');
    }],
    ['only in the reflog', async () => {
      await tree.git('checkout', '-q', 'agent/work');
      await tree.git('commit', '-q', '--amend', '-m', 'better');
      await tree.git('branch', '-q', 'same');
    }],
    ['in a work tree that was removed', async () => {
      const folder = join(await temporaryFolder(), 'wt');
      await tree.git('worktree', 'add', '-q', folder, 'agent/work');
      await tree.git('worktree', 'remove', folder);
      await tree.git('branch', '-q', '-D', 'agent/work');
    }],
  ])('are complete if it is %s', async (_, work) => {
    await commitOnBranch(tree.folder);
    await work();
    expect((await changesOf())[0]).toBe(true);
  });
});
