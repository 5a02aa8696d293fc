import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { executeIn, type WorkTree } from '../../../contracts/work-tree.ts';
import { list, reasonOf, take } from './snapshot-support.ts';
import { commits, createScene, open } from './support.ts';

type Git = WorkTree['git'];

const commit = async (git: Git, ...flags: readonly string[]): Promise<string> => {
  await git('add', '-A');
  return await git('commit', '-q', '-m', 'new', ...flags);
};

test.each([
  ['an amended start commit', (git: Git): Promise<string> => commit(git, '--amend'), ['new'], true],
  ['a squash into an older commit', async (git: Git): Promise<void> => {
    await git('reset', '-q', '--soft', 'HEAD~2');
    await commit(git);
  }, ['new'], true],
  ['a reset and a new commit', async (git: Git): Promise<void> => {
    await git('reset', '-q', '--hard', 'HEAD~2');
    await commit(git);
  }, ['new'], true],
  ['a reset to an older commit', (git: Git): Promise<string> => git('reset', '-q', '--hard', 'HEAD~2'), [], false],
  ['a detached older commit', (git: Git): Promise<string> => git('checkout', '-q', '--detach', 'HEAD~1'), [], false],
  ['an orphan commit', async (git: Git): Promise<void> => {
    await git('checkout', '-q', '--orphan', 'other');
    await commit(git);
  }, ['new'], true],
  ['a branch without commits', (git: Git): Promise<string> => git('update-ref', '-d', 'HEAD'), [], false],
] as const)('the changes since the start can be read after %s, but not published', async (_, rewrite, subjects, isCommitted) => {
  const scene = await createScene(commits(4));
  const mirror = scene.mirror();
  const tree = await open(mirror, scene.request);
  const base = tree.commit ?? '';
  await writeFile(join(tree.folder, 'new file'), 'new\n');
  await rewrite(tree.git);
  await writeFile(join(tree.folder, 'last'), 'not committed\n');

  const changes = await list(mirror, tree);
  await using snapshot = await take(mirror, tree);
  expect(changes.commits.map(({ subject }) => subject)).toEqual(subjects);
  expect(changes).toEqual({
    head: snapshot.head, complete: true, commits: await snapshot.commits(neverAborts), files: await snapshot.files(neverAborts),
  });
  const committed = changes.files.filter((file) => file.committed).map(({ path }) => path);
  expect(committed.includes('new file')).toBe(isCommitted);
  expect(committed).not.toContain('last');

  // The patch gives a clone of the start the same files.
  const clone = await open(mirror, scene.request);
  await writeFile(join(clone.folder, '.git/whole.patch'), await text(snapshot.patch(null, neverAborts)));
  await clone.git('status');
  await clone.git('apply', '--binary', '--index', '.git/whole.patch');
  expect(await clone.git('write-tree')).toBe(snapshot.tree);
  const request = { author: { name: 'A', email: 'a@example.com' }, message: 'all', at: 0 };
  expect(await reasonOf(snapshot.commit(request, neverAborts))).toEqual({ code: 'history_rewritten' });
  expect(snapshot.head).not.toBe(base);
});

test('a commit after the start can be published from an image without grep', async () => {
  const scene = await createScene(commits(2));
  const mirror = scene.mirror();
  const tree = await open(mirror, scene.request);
  await writeFile(join(tree.folder, 'new file'), 'new\n');
  await commit(tree.git);
  const programs = join(tree.folder, '.git/programs');
  await mkdir(programs);
  await writeFile(join(programs, 'grep'), '#!/bin/sh\nexit 127\n', { mode: 0o755 });
  const path = `PATH=${programs}:${process.env['PATH'] ?? ''}`;
  await using snapshot = await mirror.takeSnapshot({ base: tree.commit, run: (command) => executeIn(tree.folder, ['env', path, ...command]) }, neverAborts);
  const request = { author: { name: 'A', email: 'a@example.com' }, message: 'all', at: 0 };
  expect(await snapshot.commit(request, neverAborts)).toBe(snapshot.head);
});
