import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { createDeflate } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { WorkTreeSnapshot } from '../../../../src/ports/work-tree-snapshot.ts';
import { executeIn } from '../../../contracts/work-tree.ts';
import { list, reasonOf, receive, take, writing, writtenIn } from './snapshot-support.ts';
import { createScene, open, temporaryFolder } from './support.ts';

const pathsOf = async (snapshot: WorkTreeSnapshot): Promise<string[]> => (await snapshot.files(neverAborts)).map(({ path }) => path);

describe('A snapshot of a hostile work tree', () => {
  test('runs no program of its hooks, filters, attributes or configuration on this machine', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    const canary = join(await temporaryFolder(), 'canary');
    const program = join(tree.folder, 'program');
    await writeFile(program, `#!/bin/sh\ntouch ${canary}\ncat\n`);
    await chmod(program, 0o755);
    for (const hook of ['pre-commit', 'post-index-change', 'reference-transaction', 'post-checkout']) {
      await writeFile(join(tree.folder, '.git/hooks', hook), `#!/bin/sh\ntouch ${canary}\n`);
      await chmod(join(tree.folder, '.git/hooks', hook), 0o755);
    }
    await writeFile(join(tree.folder, '.gitattributes'), '* diff=evil filter=evil\n');
    const settings = [
      ['core.fsmonitor', program], ['core.hooksPath', join(tree.folder, '.git/hooks')], ['diff.external', program], ['diff.evil.textconv', program],
      ['diff.evil.command', program], ['core.sshCommand', program], ['core.pager', program], ['core.alternateRefsCommand', program], ['uploadpack.packObjectsHook', program],
    ] as const;
    for (const [name, value] of settings) await tree.git('config', name, value);
    await writeFile(join(tree.folder, 'c0.txt'), 'changed\n');
    await using snapshot = await take(mirror, tree);
    expect(await pathsOf(snapshot)).toEqual(['.gitattributes', 'c0.txt', 'program']);
    expect(await list(mirror, tree)).toMatchObject({ files: await snapshot.files(neverAborts), complete: true });
    expect(await text(snapshot.patch(null, neverAborts))).toContain('+changed\n');
    expect(existsSync(canary)).toBe(false);

    // Git in the sandbox uses the filter to read the files. It never runs on this machine.
    await tree.git('config', 'filter.evil.clean', program);
    await tree.git('config', 'filter.evil.smudge', program);
    const { line, pack } = await writtenIn(mirror, tree);
    await rm(canary, { force: true });
    await using received = await receive(mirror, tree.commit, [`${line}\n`, new Uint8Array(pack)]);
    expect(await pathsOf(received)).toContain('c0.txt');
    await text(received.patch(null, neverAborts));
    expect(existsSync(canary)).toBe(false);
  });

  test('compares files without the attributes and the configuration of the work tree', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    await writeFile(join(tree.folder, '.gitattributes'), '*.txt binary\n');
    await writeFile(join(tree.folder, '.git/info/attributes'), '* -diff\n');
    await writeFile(join(tree.folder, '.gitmodules'), '[submodule "inner"]\n\tpath = inner\n\turl = inner\n\tignore = all\n');
    for (const [name, value] of [['diff.ignoreSubmodules', 'all'], ['diff.relative', 'true'], ['i18n.logOutputEncoding', 'latin1'], ['log.showSignature', 'true']] as const) {
      await tree.git('config', name, value);
    }
    await tree.git('init', '-q', 'inner');
    await tree.git('-C', 'inner', 'commit', '-q', '--allow-empty', '-m', 'inner');
    await writeFile(join(tree.folder, 'c0.txt'), 'changed\n');
    await tree.git('add', '-A');
    await tree.git('commit', '-q', '-m', 'Gr\u00f6\u00dfe');
    await tree.git('rm', '-q', '--cached', 'c0.txt');
    await writeFile(join(tree.folder, 'c0.txt'), 'changed again\n');
    await using snapshot = await take(mirror, tree);
    const files = await snapshot.files(neverAborts);
    expect(files.map(({ path, added, committed }) => [path, added, committed])).toEqual([
      ['.gitattributes', 1, true], ['.gitmodules', 4, true], ['c0.txt', 1, false], ['inner', 1, true],
    ]);
    const { head, complete } = snapshot;
    expect(await list(mirror, tree)).toEqual({ head, complete, files, commits: await snapshot.commits(neverAborts) });
    expect(await snapshot.commits(neverAborts)).toMatchObject([{ subject: 'Gr\u00f6\u00dfe' }]);
  });

  test('keeps symbolic links and inner repositories as such, and accepts a `.git` file', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    await symlink('/etc', join(tree.folder, 'outside'));
    await mkdir(join(tree.folder, 'empty'));
    await tree.git('init', '-q', 'empty');
    await tree.git('init', '-q', 'inner');
    await tree.git('-C', 'inner', 'commit', '-q', '--allow-empty', '-m', 'inner');
    await using snapshot = await take(mirror, tree);
    const files = await snapshot.files(neverAborts);
    expect(files.map(({ path, mode }) => [path, mode])).toEqual([['inner', '160000'], ['outside', '120000']]);
    expect(snapshot.complete).toBe(false);
    expect(await text(snapshot.patch(null, neverAborts))).not.toContain('root:');

    await rm(join(tree.folder, 'empty'), { recursive: true });
    const elsewhere = join(await temporaryFolder(), 'elsewhere');
    await rename(join(tree.folder, '.git'), elsewhere);
    await writeFile(join(tree.folder, '.git'), `gitdir: ${elsewhere}\n`);
    await using linked = await take(mirror, tree);
    expect([await pathsOf(linked), linked.complete]).toEqual([['inner', 'outside'], false]);
  });

  test('is not complete if an inner repository is new or has another commit, because its files are left out', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const opened = await open(mirror, scene.request);
    await opened.git('init', '-q', 'inner');
    await opened.git('-C', 'inner', 'commit', '-q', '--allow-empty', '-m', 'first');
    const isComplete = async (tree: typeof opened) => {
      await using snapshot = await take(mirror, tree);
      return [snapshot.complete, (await list(mirror, tree)).complete];
    };
    expect(await isComplete(opened)).toEqual([false, false]);
    await opened.git('add', '-A');
    await opened.git('commit', '-q', '-m', 'with inner');
    const committed = { ...opened, commit: (await opened.git('rev-parse', 'HEAD')).trim() };
    expect(await isComplete(committed)).toEqual([true, true]);
    await opened.git('-C', 'inner', 'commit', '-q', '--allow-empty', '-m', 'second');
    expect(await isComplete(committed)).toEqual([false, false]);
  });

  test('is refused if git fails in the sandbox or is missing there', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    await writeFile(join(tree.folder, '.git/index'), 'no index at all');
    expect(await reasonOf(take(mirror, tree))).toMatchObject({ code: 'snapshot_failed', exitCode: 128, output: expect.stringContaining('index') });
    const withoutGit = { base: tree.commit, run: (command: readonly string[]) => executeIn(tree.folder, ['env', 'PATH=/nowhere', ...command]) };
    expect(await reasonOf(mirror.takeSnapshot(withoutGit, neverAborts))).toEqual({ code: 'git_missing' });
  });

  test('leaves no files, neither in the work tree nor on this machine', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    const [temporary] = await readdir(join(scene.root, 'tmp'));
    const folder = join(scene.root, 'tmp', temporary ?? '');
    // Folders that are not used any more are removed in the background.
    await expect.poll(() => readdir(folder)).toEqual([]);
    {
      await using snapshot = await take(mirror, tree);
      await snapshot.files(neverAborts);
      await expect.poll(() => readdir(folder)).toHaveLength(1);
    }
    await reasonOf(receive(mirror, tree.commit, ['no line of ours\n']));
    await expect.poll(() => readdir(folder)).toEqual([]);
    expect(await tree.git('status', '--porcelain')).toBe('');
  });
});

describe('A snapshot from a sandbox that lies', () => {
  test('is refused as `snapshot_damaged` if its first line or its pack is wrong', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    await writeFile(join(tree.folder, 'new'), 'new\n'.repeat(1000));
    const { line, pack } = await writtenIn(mirror, tree);
    const base = tree.commit ?? '';
    const good = new Uint8Array(pack);
    const flipped = good.with(Math.floor(good.length / 2), (good[Math.floor(good.length / 2)] ?? 0) ^ 0xff);
    const other = '1'.repeat(40);
    const damaged: readonly (readonly (string | Uint8Array)[])[] = [
      ['hello\n'],
      ['x'.repeat(1_000_000)],
      [`${line}\n`, good.slice(0, -30)],
      [`${line}\n`, flipped],
      [`${line}\n`],
      [`${line.replace(/ [0-9a-f]{40} 1/u, ` ${other} 1`)}\n`, good],
      [`${line.replaceAll(base, other)}\n`, good],
      [`${line} --all\n`, good],
    ];
    for (const written of damaged) {
      const promise = receive(mirror, base, written).then((snapshot) => snapshot.files(neverAborts));
      expect((await reasonOf(promise)).code).toBe('snapshot_damaged');
    }
    await using fine = await receive(mirror, base, [`${line}\n`, good]);
    expect(await pathsOf(fine)).toEqual(['new']);
  });

  test('is refused if its list of changes is malformed or too long', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const base = 'a'.repeat(40);
    const file = [':100644 100644 1111111 2222222 M', 'c0.txt', '1\t2\tc0.txt'];
    const commit = ['b'.repeat(40), 'A', 'a@example.com', '1700000000', 'work'];
    const listed = async (entries: readonly string[], exitCode = 0) => await mirror.listChanges(writing(base, [entries.map((entry) => `${entry}\0`).join('')], exitCode), neverAborts);
    expect(await listed([`changes ${base} 1`, ...file, '', ''])).toMatchObject({ head: base, files: [{ path: 'c0.txt', added: 1, removed: 2, committed: false }] });
    expect((await listed([`changes ${'b'.repeat(40)} 0`, ...file, '', '', ...commit])).files).toMatchObject([{ committed: true }]);
    const malformed = [
      [], ['changes'], [`changes ${base} 1`, ...file], [`changes ${base} 1`, ...file, ''], ['changes abc 1', '', ''], [`changes ${base} 2`, '', ''],
      [`changes ${base} 1`, file[0] ?? '', file[1] ?? '', '', ''], [`changes ${base} 1`, ':100644 100644 1 2 X', ...file.slice(1), '', ''],
      [`changes ${base} 1`, ...file.slice(0, 2), 'many\t2\tc0.txt', '', ''], [`changes ${base} 1`, ...file, 'more', '', ''],
      [`changes ${base} 1`, '', '', ...commit.slice(1)], [`changes ${base} 1`, '', '', ...commit.with(3, 'soon')], [`changes ${base} 1`, '', '', ...commit.with(0, '--all')],
    ];
    for (const entries of malformed) expect(await reasonOf(listed(entries))).toEqual({ code: 'snapshot_damaged' });
    expect(await reasonOf(listed([`changes ${base} 1`, ...file, '', ''], 128))).toEqual({ code: 'snapshot_failed', exitCode: 128, output: 'what it says' });
    const many = Array.from({ length: 51_000 }, (_, index) => [':000000 100644 0 1 A', String(index)]).flat();
    expect(await reasonOf(listed([`changes ${base} 1`, ...many, '', '']))).toMatchObject({ code: 'too_large' });
    expect(await reasonOf(listed(Array.from({ length: 450_000 }, () => 'x')))).toMatchObject({ code: 'too_large' });
    expect(await reasonOf(listed(['x'.repeat(70 * 2 ** 20)]))).toMatchObject({ code: 'too_large' });
  });

  test('can not be published if its commits do not descend from the base, even if it says so', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    const base = tree.commit ?? '';
    const orphan = await tree.git('commit-tree', 'HEAD^{tree}', '-m', 'an orphan');
    await tree.git('update-ref', 'refs/heads/main', orphan);
    const { line, pack } = await writtenIn(mirror, { ...tree, commit: orphan });
    const pack2 = execFileSync('git', ['-C', tree.folder, 'pack-objects', '-q', '--stdout', '--revs'], { input: `${orphan}\n${base}\n` });
    expect(pack.length).toBeGreaterThan(0);
    const forged = line.replace(/ 1 .*/u, ` 1 ${base}`);
    await using snapshot = await receive(mirror, base, [`${forged}\n`, new Uint8Array(pack2)]);
    const commit = snapshot.commit({ author: { name: 'A', email: 'a@example.com' }, message: 'all', at: 0 }, neverAborts);
    expect(await reasonOf(commit)).toEqual({ code: 'history_rewritten' });
  });

  test('is refused with the object and its path if git rejects it as dangerous', async () => {
    const scene = await createScene();
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    const git = (args: readonly string[], input?: string): string => execFileSync('git', ['-C', tree.folder, ...args], { input, encoding: 'utf8' }).trim();
    const blob = git(['hash-object', '-w', '--stdin'], 'evil\n');
    const evil = git(['mktree'], `100644 blob ${blob}\t.git\n`);
    const pack = execFileSync('git', ['-C', tree.folder, 'pack-objects', '-q', '--stdout', '--revs'], { input: `${evil}\n${tree.commit}\n` });
    const written = [`snapshot ${tree.commit} ${evil} 1 ${tree.commit}\n`, new Uint8Array(pack)];
    expect(await reasonOf(receive(mirror, tree.commit, written))).toMatchObject({ code: 'object_refused', check: 'hasDotgit', object: evil, path: null });
  });

  test('is refused as `snapshot_damaged` if an object of a small pack is larger than 512 MiB', async () => {
    const mirror = (await createScene()).mirror();
    const size = 513 * 2 ** 20;
    const tree = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
    const start = Buffer.from(`tree ${tree}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\n`);
    const bytes = function* bytes(): Generator<Buffer> {
      yield start;
      for (let left = size - start.length; left > 0; left -= 2 ** 20) yield Buffer.alloc(Math.min(left, 2 ** 20), 'x');
    };
    // The type is 1 (a commit), and the size has 4 bits in the first byte and 7 bits in each further one.
    const sizes = [0, 7, 14, 21].map((shift) => Math.floor(size / 2 ** (4 + shift)) & 0x7f);
    const head = Uint8Array.of(0x90 | (size & 15), ...sizes.map((seven, index) => (index < 3 ? 0x80 | seven : seven)));
    const content = await buffer(Readable.from(bytes()).pipe(createDeflate({ level: 1 })));
    const pack = Buffer.concat([Buffer.from('PACK\0\0\0\u0002\0\0\0\u0001'), head, content]);
    const written = [`snapshot - ${tree} 1\n`, new Uint8Array(pack), new Uint8Array(createHash('sha1').update(pack).digest())];
    expect(pack.length).toBeLessThan(10 * 2 ** 20);
    expect(await reasonOf(receive(mirror, null, written))).toEqual({ code: 'snapshot_damaged' });
  });
});
