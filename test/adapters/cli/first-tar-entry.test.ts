import { chmod, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import { expect, onTestFinished, test } from 'vitest';
import { readFirstEntry, writeFirstEntry } from '../../../src/adapters/cli/first-tar-entry.ts';

test('the first entry is read after its extended header, and all bytes stay in the stream', async () => {
  const packed = pack();
  packed.entry({ name: 'ü'.repeat(200), mode: 0o640, mtime: new Date(1000) }, 'content');
  packed.finalize();
  const bytes = await buffer(packed);
  const tar = Readable.from([bytes.subarray(0, 700), bytes.subarray(700)], { objectMode: false });
  expect(await readFirstEntry(tar)).toMatchObject({ type: 'file', size: 7, mode: 0o640, modifiedAt: 1 });
  expect(await buffer(tar)).toEqual(bytes);
});

test('a stream that failed before its first read is an error', async () => {
  const tar = new Readable({ read: () => {} });
  tar.on('error', () => {}).destroy(new Error('the connection was lost'));
  await new Promise(setImmediate);
  await expect(readFirstEntry(tar)).rejects.toThrow('the connection was lost');
});

test('an archive that ends before its first entry is an error', async () => {
  await expect(readFirstEntry(Readable.from([Buffer.alloc(0)], { objectMode: false }))).rejects.toThrow('The archive is not complete.');
});

test('a file that its owner can not write is written, with its mode and time and without the rest of the tar', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'skep-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await chmod(folder, 0o777);
  const packed = pack();
  packed.entry({ name: 'file', mode: 0o444, mtime: new Date(1000) }, 'content');
  packed.finalize();
  const tar = Readable.from([await buffer(packed)], { objectMode: false });
  const first = await readFirstEntry(tar);
  if (first === null) throw new Error('the tar has no entry');
  const path = join(folder, 'file');
  await asNormalUser(() => writeFirstEntry(tar, first, path));
  expect(await readFile(path, 'utf8')).toBe('content');
  const { mode, mtimeMs } = await stat(path);
  expect([mode & 0o777, mtimeMs]).toEqual([0o444, 1000]);
});

/** The mode of a file does not bind root. */
async function asNormalUser(work: () => Promise<void>): Promise<void> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    await work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}
