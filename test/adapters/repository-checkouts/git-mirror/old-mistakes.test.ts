import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { executeIn } from '../../../contracts/work-tree.ts';
import { reasonOf, take, takeWithNewFile } from './snapshot-support.ts';
import { createScene, open } from './support.ts';

describe('A snapshot of a repository with an old mistake', () => {
  test.each([
    ['badTimezone', (commit: string) => commit.replace(/ \+0000$/mu, ' +051800')],
    ['missingSpaceBeforeDate', (commit: string) => commit.replace(/> (?=\d)/u, '>')],
    ['zeroPaddedFilemode', (commit: string, padded: string) => commit.replace(/^tree .*/u, `tree ${padded}`)],
  ])('in its last commit has the changes: %s', async (mistake, make) => {
    const scene = await createScene([{ id: 'first', at: 1, files: [['folder/file', 'one\n']] }]);
    const git = (args: readonly string[], input: string | Buffer = ''): string =>
      execFileSync('git', ['-C', join(scene.served, 'acme/shop.git'), ...args], { input, encoding: 'utf8' });
    const add = (type: string, content: string | Buffer): string => git(['hash-object', '-w', '--literally', '-t', type, '--stdin'], content).trim();
    const padded = add('tree', Buffer.concat([Buffer.from('040000 folder\0'), Buffer.from(git(['rev-parse', 'HEAD:folder']).trim(), 'hex')]));
    git(['update-ref', 'HEAD', add('commit', make(git(['cat-file', 'commit', 'HEAD']), padded))]);
    expect(spawnSync('git', ['-C', join(scene.served, 'acme/shop.git'), 'fsck', '--strict'], { encoding: 'utf8' }).stderr).toContain(mistake);
    const mirror = scene.mirror();
    const { snapshot: taken } = await takeWithNewFile(mirror, scene.request);
    await using snapshot = taken;
    expect((await snapshot.files(neverAborts)).map(({ path }) => path)).toEqual(['new']);
  });
});

describe('A snapshot', () => {
  test('of a repository with short names of attributes files has the changes', async () => {
    const files = [['gitatt~1', 'x\n'], ['folder/GI7D29~1', 'x\n']] as const;
    const scene = await createScene([{ id: 'first', at: 1, files }]);
    const mirror = scene.mirror();
    const { snapshot: taken } = await takeWithNewFile(mirror, scene.request);
    await using snapshot = taken;
    expect((await snapshot.files(neverAborts)).map(({ path }) => path)).toEqual(['new']);
  });

  test('of a repository with folders of others has them as they are there', async () => {
    const scene = await createScene([{ id: 'first', at: 1, files: [['conv-1/file', 'of another\n']] }]);
    const mirror = scene.mirror();
    const { folder, commit, git } = await open(mirror, scene.request);
    for (const path of ['conv-1/file', 'new']) await writeFile(join(folder, path), 'new\n');
    await git('add', '-A');
    const request = { base: commit, foldersOfOthers: 'conv-[0-9]', run: (command: readonly string[]) => executeIn(folder, command) };
    await using snapshot = await mirror.takeSnapshot(request, neverAborts);
    const files = await snapshot.files(neverAborts);
    expect(files.map(({ path }) => path)).toEqual(['new']);
    expect(await mirror.listChanges(request, neverAborts)).toMatchObject({ complete: true, files });
  });

  test('is refused with the path of an attributes file whose lines are too long for git', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    await mkdir(join(tree.folder, 'folder'));
    await writeFile(join(tree.folder, 'folder/.gitattributes'), `*.x ${'a'.repeat(2048)}\n`);
    expect(await reasonOf(take(mirror, tree))).toMatchObject({ code: 'object_refused', check: 'gitattributesLineLength', path: 'folder/.gitattributes' });
  });

  test('is refused without the password in the URL of a module that git refuses', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    await writeFile(join(tree.folder, '.gitmodules'), '[submodule "one"]\n\tpath = one\n\turl = https://ann:s3cret@example.com/%0aone\n');
    const reason = await reasonOf(take(mirror, tree));
    expect(reason).toMatchObject({ code: 'object_refused', check: 'gitmodulesUrl', path: '.gitmodules' });
    expect(JSON.stringify(reason)).not.toContain('s3cret');
  });
});
