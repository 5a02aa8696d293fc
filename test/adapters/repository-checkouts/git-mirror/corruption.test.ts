import { chmod, mkdir, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMirrorGit } from '../../../../src/adapters/repository-checkouts/git-mirror/mirror-git.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { git } from '../../../contracts/git-repository.ts';
import { commits, createScene, open, noProgress, type Scene } from './support.ts';

/** Returns the folder of the only mirror. */
async function folderOf({ root }: Scene): Promise<string> {
  const [name = ''] = await readdir(join(root, 'mirrors'));
  return join(root, 'mirrors', name);
}

async function allFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** Ways in which the folder may become corrupt. */
const damages: readonly (readonly [string, (folder: string) => Promise<void>])[] = [
  [
    'lock files of a killed git',
    async (folder) => {
      const gitDir = join(folder, 'repository.git');
      const [ref = ''] = await readdir(join(gitDir, 'refs/skep'));
      const locks = ['config.lock', 'HEAD.lock', 'shallow.lock', 'packed-refs.lock', `refs/skep/${ref}.lock`, 'objects/pack/tmp_pack_x'];
      for (const lock of locks) await writeFile(join(gitDir, lock), '');
    },
  ],
  ['a missing HEAD', (folder) => rm(join(folder, 'repository.git/HEAD'))],
  ['an empty HEAD', (folder) => truncate(join(folder, 'repository.git/HEAD'), 0)],
  ['a missing repository', (folder) => rm(join(folder, 'repository.git'), { recursive: true })],
  ['a changed configuration', (folder) => writeFile(join(folder, 'repository.git/config'), '[core]\n\tfsmonitor = "touch /nowhere"\n')],
  ['missing objects', (folder) => rm(join(folder, 'repository.git/objects'), { recursive: true })],
  [
    'truncated packs',
    async (folder) => {
      for (const path of await allFiles(join(folder, 'repository.git/objects'))) {
        await chmod(path, 0o600);
        await truncate(path, Math.floor((await stat(path)).size / 2));
      }
    },
  ],
  ['an invalid ref', async (folder) => {
    for (const path of await allFiles(join(folder, 'repository.git/refs'))) await writeFile(path, 'rubbish');
  }],
  ['an empty folder', async (folder) => {
    await rm(folder, { recursive: true });
    await mkdir(folder);
  }],
];

describe('A mirror', () => {
  test.each(damages)('is repaired or created again with %s', async (_, damage) => {
    const scene = await createScene();
    const first = scene.mirror();
    await open(first, scene.request);
    await first.close();
    await damage(await folderOf(scene));
    const mirror = scene.mirror();
    for (const count of [3, 4]) {
      await scene.publish(commits(count));
      const tree = await open(mirror, scene.request);
      expect(Object.keys(tree.files)).toHaveLength(count);
      await tree.git('fsck', '--full');
    }
  });

  test('makes one checkout fail if its prepared pack is corrupt, and then prepares it again', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    await open(mirror, scene.request);
    const packs = (await allFiles(join(await folderOf(scene), 'exports'))).filter((path) => path.endsWith('.pack'));
    expect(packs).toHaveLength(1);
    for (const path of packs) {
      await chmod(path, 0o600);
      await writeFile(path, 'rubbish');
    }
    await expect(open(mirror, scene.request)).rejects.toMatchObject({ code: 'provider_failed' });
    expect(Object.keys((await open(mirror, scene.request)).files)).toHaveLength(3);
  });

  test('removes temporary files of processes that have ended, but not of a running one', async () => {
    const scene = await createScene();
    const first = scene.mirror();
    await open(first, scene.request);
    const [living = ''] = await readdir(join(scene.root, 'tmp'));
    const dead = ['4194399-x', `${process.pid}-of-an-earlier-start`, 'rubbish'];
    for (const name of dead) await mkdir(join(scene.root, 'tmp', name, 'deep'), { recursive: true });
    const second = scene.mirror();
    await open(second, scene.request);
    const names = await readdir(join(scene.root, 'tmp'));
    expect(names).toContain(living);
    expect(names).toHaveLength(2);
    await Promise.all([first.close(), second.close()]);
    expect(await readdir(join(scene.root, 'tmp'))).toEqual([]);
  });

  test('fails, and check() reports it, if the folder can not be written', async () => {
    const scene = await createScene();
    await writeFile(scene.root, 'a file');
    const mirror = scene.mirror();
    expect(await mirror.check()).toMatchObject({ ok: false });
    await expect(mirror.checkOut(scene.request, noProgress, neverAborts)).rejects.toMatchObject({ code: 'provider_failed' });
    await rm(scene.root);
    expect(Object.keys((await open(mirror, scene.request)).files)).toHaveLength(3);
    expect(await mirror.check()).toMatchObject({ ok: true });
  });

  test('is reported by check() if it is removed meanwhile, and the git program is not blamed', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    await open(mirror, scene.request);
    await rm(join(scene.root, 'mirrors'), { recursive: true });
    expect(await mirror.check()).toMatchObject({ ok: false, detail: expect.stringContaining('can not be read') });
    await rm(scene.root, { recursive: true });
    expect(await mirror.check()).toMatchObject({ ok: false, detail: expect.stringContaining('can not be read') });
    const folder = join(scene.root, 'gone');
    const ran = createMirrorGit('git', 'git').run({ args: ['--version'], folder }, neverAborts);
    await expect(ran).rejects.toThrow('the folder in which git runs is not there');
  });

  test('refuses dangerous or malformed objects when it fetches them', async () => {
    const scene = await createScene({ commits: [{ id: 'a', at: 1, files: [['x', '1']] }] });
    const gitDir = join(scene.served, 'acme/shop.git');
    const blob = (await git(gitDir, ['rev-parse', 'main:x'])).trim();
    const entry = Buffer.concat([Buffer.from('100644 .git\0'), Buffer.from(blob, 'hex')]);
    await writeFile(join(scene.served, 'tree'), entry);
    const tree = (await git(gitDir, ['hash-object', '-t', 'tree', '-w', '--literally', join(scene.served, 'tree')])).trim();
    const commit = (await git(gitDir, ['commit-tree', tree, '-m', 'bad'])).trim();
    await git(gitDir, ['update-ref', 'refs/heads/main', commit]);
    await expect(open(scene.mirror(), scene.request)).rejects.toThrow('malformed or dangerous');
  });
});
