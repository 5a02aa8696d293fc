import { mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import { expect, onTestFinished, test } from 'vitest';
import { readFirstEntry, writeFirstEntry } from '../../../src/adapters/cli/first-tar-entry.ts';
import { until } from '../../support/until.ts';

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

test('a file is written with its mode and time and without the rest of the tar, and never opened again, since its mode may forbid that', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'skep-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [path, moved] = [join(folder, 'file'), join(folder, 'moved')];
  const packed = pack();
  // A mode that no umask of a user restricts further.
  packed.entry({ name: 'file', mode: 0o400, mtime: new Date(1000) }, 'content');
  packed.finalize();
  const bytes = await buffer(packed);
  const tar = new Readable({ read() {} });
  tar.push(bytes.subarray(0, 512));
  const first = await readFirstEntry(tar);
  if (first === null) throw new Error('the tar has no entry');
  const written = writeFirstEntry(tar, first, path);
  await until(() => rename(path, moved).then(() => true, () => false), Boolean);
  tar.push(bytes.subarray(512));
  tar.push(null);
  await written;
  expect(await readFile(moved, 'utf8')).toBe('content');
  const { mode, mtimeMs } = await stat(moved);
  expect([mode & 0o777, mtimeMs]).toEqual([0o400, 1000]);
});
