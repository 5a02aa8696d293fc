import { mkdir, mkdtemp, readdir, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { unpackBelow } from '../../../../src/adapters/sandbox-runtime/process/archives.ts';
import { tarEntries } from '../../../../src/adapters/sandbox-runtime/tar.ts';
import { tarEnd, tarEntry } from '../../../../src/adapters/shared/packed-tar.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { tarOf, type TarItem } from '../../../contracts/sandbox-runtime-streams.ts';

async function* archive(): AsyncGenerator<Uint8Array> {
  yield* tarEntry({ name: Buffer.from('\xE9/file', 'latin1'), type: 'file' });
  yield tarEnd;
}

/** Returns a folder with the folders `outside` and `workspace`. */
async function twoFolders(): Promise<string> {
  const top = await mkdtemp(join(tmpdir(), 'skep-archives-'));
  onTestFinished(() => rm(top, { recursive: true }));
  for (const name of ['outside', 'workspace']) await mkdir(join(top, name), { mode: 0o700 });
  return top;
}

test.runIf(process.platform === 'linux')('a folder whose name is not UTF-8 is not another one with U+FFFD', async () => {
  const top = await twoFolders();
  await symlink('../outside', join(top, 'workspace/\uFFFD'));

  await unpackBelow(join(top, 'workspace'), tarEntries(ReadableStream.from(archive()), neverAborts));
  expect(await readdir(join(top, 'outside'))).toEqual([]);
  const folder = Buffer.concat([Buffer.from(join(top, 'workspace/')), Buffer.from([0xe9])]);
  expect(await readdir(folder)).toEqual(['file']);
});

test('no mode or time of a directory outside is changed if an entry names a link to it', async () => {
  const top = await twoFolders();
  const outside = join(top, 'outside');
  await mkdir(join(outside, 'below'), { mode: 0o700 });
  await symlink(outside, join(top, 'workspace/there'));
  const before = await Promise.all([stat(outside), stat(join(outside, 'below'))]);
  const open = { type: 'directory', mode: 0o777, mtime: new Date(0) } as const;
  const archives: TarItem[][] = [
    [[{ name: 'there', ...open }]],
    [[{ name: 'there/below', ...open }]],
    [[{ name: 'own', type: 'symlink', linkname: '../outside' }], [{ name: 'own', ...open }]],
  ];
  for (const items of archives) {
    await expect(unpackBelow(join(top, 'workspace'), tarEntries(tarOf(items), neverAborts))).rejects.toThrow('leads through the link');
  }
  const after = await Promise.all([stat(outside), stat(join(outside, 'below'))]);
  expect(after.map(({ mode, mtimeMs }) => [mode, mtimeMs])).toEqual(before.map(({ mode, mtimeMs }) => [mode, mtimeMs]));
});

test('a directory is refused if its path is too long for the system', async () => {
  const name = Array.from({ length: 16 }, () => 'x'.repeat(254)).join('/');
  const top = await twoFolders();
  const unpacking = unpackBelow(join(top, 'workspace'), tarEntries(tarOf([[{ name, type: 'directory' }]]), neverAborts));
  await expect(unpacking).rejects.toThrow('(ENAMETOOLONG)');
});

const directory = (name: string, mode: number, seconds: number): TarItem =>
  [{ name, type: 'directory', mode, mtime: new Date(seconds * 1000) }];

test('a directory has the mode and the time of its last entry, and its parent may come after it', async () => {
  const workspace = join(await twoFolders(), 'workspace');
  const items = [directory('d/inner', 0o750, 1), directory('d', 0o700, 2), directory('d/inner', 0o755, 3), directory('d', 0o500, 4)];
  await unpackBelow(workspace, tarEntries(tarOf(items), neverAborts));
  const found = await Promise.all(['d', 'd/inner'].map((name) => stat(join(workspace, name))));
  expect(found.map(({ mode, mtimeMs }) => [mode & 0o777, mtimeMs])).toEqual([[0o500, 4000], [0o755, 3000]]);
});
