import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import { expect, test } from 'vitest';
import { readFirstEntry } from '../../../src/adapters/cli/first-tar-entry.ts';

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
