import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { mirrorId } from '../../../../src/adapters/repository-checkouts/git-mirror/mirror-folder.ts';
import { openMirrorStore, sizeOf } from '../../../../src/adapters/repository-checkouts/git-mirror/mirror-store.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { git } from '../../../contracts/git-repository.ts';
import { executeIn } from '../../../contracts/work-tree.ts';
import { until } from '../../../support/until.ts';
import { reasonOf, receive, take } from './snapshot-support.ts';
import { commits, createScene, failureOf, open, start, temporaryFolder, noProgress, type Scene } from './support.ts';

async function runShell(gitDir: string, command: string): Promise<string> {
  return execFileSync('/bin/sh', ['-c', command], { env: { PATH: process.env['PATH'], GIT_DIR: gitDir }, encoding: 'utf8' }).trim();
}

/** Describes a repository of about `bytes` bytes that can not be compressed. */
const large = (bytes: number) => [{ id: 'only', at: start, files: [['noise', randomBytes(bytes / 2).toString('hex')] as const] }];

async function mirrors({ root }: Scene): Promise<number> {
  return (await readdir(join(root, 'mirrors'))).length;
}

/** Commits the tree to the branch `main` of a repository. */
async function commitTree(gitDir: string, tree: string): Promise<void> {
  const commit = (await git(gitDir, ['commit-tree', '-m', 'hostile', tree])).trim();
  await git(gitDir, ['update-ref', 'refs/heads/main', commit]);
}

async function treeOf(gitDir: string, lines: readonly string[]): Promise<string> {
  const list = join(await temporaryFolder(), 'list');
  await writeFile(list, lines.map((line) => `${line}\n`).join(''));
  return await runShell(gitDir, `git mktree < '${list}'`);
}

describe('A checkout', () => {
  test('fails if the work tree has too many files: one file ten thousand million times', async () => {
    const scene = await createScene();
    const gitDir = await scene.publish(commits(1));
    let tree = await treeOf(gitDir, [`100644 blob ${(await git(gitDir, ['rev-parse', 'HEAD:c0.txt'])).trim()}\tfile`]);
    for (let level = 0; level < 10; level += 1) {
      const same = tree;
      tree = await treeOf(gitDir, Array.from({ length: 10 }, (_, index) => `040000 tree ${same}\t${index}`));
    }
    await commitTree(gitDir, tree);
    expect(await failureOf(scene.mirror().checkOut(scene.request, noProgress, neverAborts))).toMatch(/^provider_failed: .*too_large.*1000000 files/u);
    expect(await sizeOf(scene.root)).toBeLessThan(100_000);
  });

  test('fails if the work tree has more than `maxWorkTreeBytes` bytes', async () => {
    const scene = await createScene();
    const gitDir = await scene.publish([{ id: 'only', at: start, files: [['zeros', '0'.repeat(100_000)]] }]);
    const blob = (await git(gitDir, ['rev-parse', 'HEAD:zeros'])).trim();
    await commitTree(gitDir, await treeOf(gitDir, Array.from({ length: 20 }, (_, index) => `100644 blob ${blob}\t${index}`)));
    const mirror = scene.mirror({ maxWorkTreeBytes: 1_999_999 });
    expect(await failureOf(mirror.checkOut(scene.request, noProgress, neverAborts))).toMatch(/^provider_failed: .*too_large.*1999999 bytes/u);
    expect(Object.keys((await open(scene.mirror({ maxWorkTreeBytes: 2_000_000 }), scene.request)).files)).toHaveLength(20);
  });

  test('fails if a path is too deep', async () => {
    const scene = await createScene([{ id: 'only', at: start, files: [[`${'a/'.repeat(250)}b`, 'deep']] }]);
    expect(await failureOf(scene.mirror().checkOut(scene.request, noProgress, neverAborts))).toMatch(/^provider_failed: .*too_large.*200 levels/u);
  });
});

describe('The disk space of mirrors', () => {
  test('is freed from the least recently used mirror first, but not from one in use', async () => {
    const scene = await createScene(large(1_000_000));
    for (const name of ['acme/second', 'acme/third']) await scene.publish(large(1_000_000), name);
    // A repository takes about 0.5 MB in the mirror and as much for its prepared pack, so two of them fit.
    const mirror = scene.mirror({ limitBytes: 2_600_000 });
    await open(mirror, scene.request);
    await open(mirror, scene.requestOf('acme/second'));
    await open(mirror, scene.request);
    scene.asked();
    await open(mirror, scene.requestOf('acme/third'));
    await until(() => mirrors(scene), (count) => count === 2);
    scene.asked();
    await open(mirror, scene.request);
    expect(scene.asked()).toEqual(['refs', 'ls-refs']);
    const held = await mirror.checkOut(scene.request, noProgress, neverAborts);
    for (const name of ['acme/second', 'acme/third', 'acme/second']) await open(mirror, scene.requestOf(name));
    scene.asked();
    const again = await mirror.checkOut(scene.request, noProgress, neverAborts);
    expect(scene.asked()).toEqual(['refs', 'ls-refs']);
    await Promise.all([held.archive.cancel(), again.archive.cancel()]);
    await until(() => mirrors(scene), (count) => count <= 2);
    expect((await mirror.check()).detail).toMatch(/repositor(?:y|ies) kept/u);
  });

  test('is measured at the first look, and again only after a use', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const kept = async () => (await mirror.check()).detail?.match(/\d+ repositor.*? kept, \d+/u)?.[0];
    const folder = join(scene.root, 'mirrors', mirrorId('github', 'acme/shop'));
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'first'), randomBytes(2 ** 19));
    expect(await kept()).toBe('1 repository kept, 1');
    await writeFile(join(folder, 'second'), randomBytes(2 ** 21));
    expect(await kept()).toBe('1 repository kept, 1');
    await open(mirror, scene.request);
    await until(kept, (detail) => detail === '1 repository kept, 3');
  });

  test('is compared with the limit at most twice for uses that end together', async () => {
    const root = await temporaryFolder();
    const [limits, times] = [{ limitBytes: 1, maxFiles: 1, maxWorkTreeBytes: 1, maxSnapshotBytes: 1 }, { timeoutMs: 1, answerMs: 1, snapshotTimeoutMs: 1 }];
    const store = await openMirrorStore({ root, ...limits, ...times, concurrency: 1, gitBinary: 'git' }, neverAborts);
    const list = vi.spyOn(store, 'list');
    for (let use = 0; use < 10; use += 1) store.evictLater();
    await store.close();
    expect(list.mock.calls.length).toBeGreaterThan(0);
    expect(list.mock.calls.length).toBeLessThanOrEqual(2);
  });

  test('is too small for a repository larger than its share, which is refused and removed', async () => {
    const scene = await createScene(large(4_000_000));
    const mirror = scene.mirror({ limitBytes: 2_000_000 });
    expect(await failureOf(mirror.checkOut(scene.request, noProgress, neverAborts))).toMatch(/^provider_failed: .*larger than 1000000 bytes/u);
    expect(await sizeOf(scene.root)).toBeLessThan(10_000);
    await scene.publish(large(10_000), 'acme/small');
    await open(mirror, scene.requestOf('acme/small'));
  });

  test('holds only the last prepared pack of a repository', async () => {
    const scene = await createScene(large(1000));
    const mirror = scene.mirror();
    for (let turn = 0; turn < 4; turn += 1) {
      await scene.publish(large(1000));
      await open(mirror, scene.request);
    }
    const [name = ''] = await readdir(join(scene.root, 'mirrors'));
    await until(() => readdir(join(scene.root, 'mirrors', name, 'exports')), (names) => names.length === 1);
  });

  test('is freed by a repack after many fetches', async () => {
    const scene = await createScene(large(1000));
    const mirror = scene.mirror();
    const fetchPack = async (): Promise<void> => {
      await scene.publish(large(1000));
      await (await mirror.checkOut(scene.request, noProgress, neverAborts)).archive.cancel();
    };
    await fetchPack();
    const [name = ''] = await readdir(join(scene.root, 'mirrors'));
    const folder = join(scene.root, 'mirrors', name, 'repository.git/objects/pack');
    const packs = async () => (await readdir(folder)).filter((file) => file.endsWith('.pack'));
    await fetchPack();
    const [pack = '', ...others] = await packs();
    expect(others).toHaveLength(1);
    // Copies instead of 40 more fetches.
    for (let copy = 10; copy < 50; copy += 1) {
      const copied = `pack-${String(copy).repeat(20)}`;
      for (const type of ['pack', 'idx']) await copyFile(join(folder, pack.replace(/pack$/, type)), join(folder, `${copied}.${type}`));
    }
    await fetchPack();
    await until(packs, (names) => names.length < 10);
    expect(Object.keys((await open(mirror, scene.request)).files)).toEqual(['noise']);
  });
});

describe('A snapshot', () => {
  test('is limited in bytes, files and time', async () => {
    const scene = await createScene();
    const small = scene.mirror({ maxSnapshotBytes: 100_000 });
    const tree = await open(small, scene.request);
    await writeFile(join(tree.folder, 'noise'), Buffer.from(Array.from({ length: 200_000 }, () => Math.random() * 256)));
    expect(await reasonOf(take(small, tree))).toMatchObject({ code: 'too_large' });
    await rm(join(tree.folder, 'noise'));
    await mkdir(join(tree.folder, 'many'));
    const entries = Array.from({ length: 51_000 }, (_, index) => `100644 blob e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\t${index}\n`).join('');
    execFileSync('git', ['-C', tree.folder, 'hash-object', '-w', '--stdin'], { input: '' });
    const many = execFileSync('git', ['-C', tree.folder, 'mktree'], { input: entries, encoding: 'utf8' }).trim();
    const pack = execFileSync('git', ['-C', tree.folder, 'pack-objects', '-q', '--stdout', '--revs'], { input: `${many}\n${tree.commit}\n` });
    await using snapshot = await receive(scene.mirror(), tree.commit, [`snapshot ${tree.commit} ${many} 1 ${tree.commit}\n`, new Uint8Array(pack)]);
    expect(await reasonOf(snapshot.files(neverAborts))).toMatchObject({ code: 'too_large' });

    const quick = scene.mirror({ snapshotTimeoutMs: 200 });
    const silent = { base: tree.commit, run: () => executeIn(tree.folder, ['sleep', '600']) };
    expect(await reasonOf(quick.listChanges(silent, neverAborts))).toEqual({ code: 'not_done_in_time', withinMs: 200 });
    expect(await reasonOf(quick.takeSnapshot(silent, neverAborts))).toEqual({ code: 'not_done_in_time', withinMs: 200 });
    expect(await readFile(join(tree.folder, 'c0.txt'), 'utf8')).toBe('c 0\n');
  });

  test('does not wait for git in other sandboxes', async () => {
    const scene = await createScene();
    const mirror = scene.mirror({ concurrency: 1 });
    const tree = await open(mirror, scene.request);
    const silent = { base: tree.commit, run: () => executeIn(tree.folder, ['sleep', '600']) };
    const leaving = new AbortController();
    const waiting = [mirror.listChanges(silent, leaving.signal), mirror.takeSnapshot(silent, leaving.signal)];
    await using snapshot = await take(mirror, tree);
    expect(await snapshot.files(neverAborts)).toEqual([]);
    leaving.abort(new Error('left'));
    for (const each of waiting) await expect(each).rejects.toThrow('left');
  });
});
