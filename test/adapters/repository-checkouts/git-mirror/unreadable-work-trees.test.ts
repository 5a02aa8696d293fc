import { execFile } from 'node:child_process';
import { chmod, mkdir, opendir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { executeIn } from '../../../contracts/work-tree.ts';
import { list, reasonOf, take } from './snapshot-support.ts';
import { createScene, open } from './support.ts';

// Otherwise root may read everything.
const withoutRights = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : [];

test.each([
  ['has new files', 'new', 0],
  ['has a tracked file', 'tracked', 0],
  ['has a tracked file that git can reach', 'tracked', 0o111],
])('the changes are not complete if git can not read a folder that %s', async (_, name, mode) => {
  const scene = await createScene();
  const mirror = scene.mirror();
  const { folder, commit, git } = await open(mirror, scene.request);
  for (const other of ['new', 'tracked']) {
    await mkdir(join(folder, other));
    await writeFile(join(folder, other, 'one'), 'one\n');
  }
  await git('add', 'tracked');
  await git('commit', '-q', '-m', 'tracked');
  await chmod(join(folder, name), mode);
  onTestFinished(() => chmod(join(folder, name), 0o700));
  const request = { base: commit, run: (command: readonly string[]) => executeIn(folder, [...withoutRights, ...command]) };
  await using snapshot = await mirror.takeSnapshot(request, neverAborts);
  expect(snapshot.complete).toBe(false);
  expect(await mirror.listChanges(request, neverAborts)).toMatchObject({ complete: false, files: await snapshot.files(neverAborts) });
});

test('the changes are complete if git can not read the settings of its user', async () => {
  const scene = await createScene();
  const mirror = scene.mirror();
  const { folder, commit } = await open(mirror, scene.request);
  const settings = join(scene.root, 'settings');
  await mkdir(settings, { mode: 0 });
  await writeFile(join(folder, 'new'), 'new\n');
  const asUser = [...withoutRights, 'env', `XDG_CONFIG_HOME=${settings}`];
  const request = { base: commit, run: (command: readonly string[]) => executeIn(folder, [...asUser, ...command]) };
  await using snapshot = await mirror.takeSnapshot(request, neverAborts);
  expect(snapshot.complete).toBe(true);
  expect(await mirror.listChanges(request, neverAborts)).toMatchObject({ complete: true, files: await snapshot.files(neverAborts) });
});

test('the changes are complete if a folder is removed while git reads the others', async () => {
  const scene = await createScene();
  const mirror = scene.mirror();
  const tree = await open(mirror, scene.request);
  for (const name of ['one', 'two']) await mkdir(join(tree.folder, name, 'inner'), { recursive: true });
  const names: string[] = [];
  for await (const { name } of await opendir(tree.folder)) if (['one', 'two'].includes(name)) names.push(name);
  const [first = '', gone = ''] = names;
  // Git opens both pipes before it opens the other folder, and waits until they are written.
  const pipes = [first, join(first, 'inner')].map((name) => join(tree.folder, name, '.gitignore'));
  await promisify(execFile)('mkfifo', pipes);
  const listed = list(mirror, tree);
  await writeFile(pipes[0] ?? '', '');
  await rm(join(tree.folder, gone), { recursive: true });
  await writeFile(pipes[1] ?? '', '');
  expect(await listed).toMatchObject({ complete: true, files: [] });
});

test('a snapshot has the changes without a file that is removed while git reads the others', async () => {
  const scene = await createScene();
  const mirror = scene.mirror();
  const tree = await open(mirror, scene.request);
  await writeFile(join(tree.folder, '.gitattributes'), 'first filter=remove\n');
  await tree.git('config', 'filter.remove.clean', 'rm -f gone*; cat');
  for (const read of [() => list(mirror, tree), () => take(mirror, tree)]) {
    for (const name of ['first', 'gone', 'gone too']) await writeFile(join(tree.folder, name), 'x\n');
    const found = await read();
    const files = typeof found.files === 'function' ? await found.files(neverAborts) : found.files;
    expect([found.complete, files.map(({ path }) => path)]).toEqual([true, ['.gitattributes', 'first']]);
  }
});

test('a snapshot is refused with the text of git if git can not open the repository', async () => {
  const scene = await createScene();
  const mirror = scene.mirror();
  const tree = await open(mirror, scene.request);
  await writeFile(join(tree.folder, '.git/config'), '[\n');
  const reason = { code: 'snapshot_failed', exitCode: 128, output: expect.stringContaining('bad config line 1') };
  expect([await reasonOf(list(mirror, tree)), await reasonOf(take(mirror, tree))]).toEqual([reason, reason]);
});
