import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'vitest';
import { rangeOf, readAheadBytes } from '../../../src/adapters/sandbox-runtime/file-content.ts';

const size = readAheadBytes + 40_000;
const content = Buffer.from(Uint8Array.from({ length: size }, (_, index) => (index * 31) % 256));

/** A source of the content up to `end`, in pieces that are smaller than what is read ahead. */
function sourceOf(end: number): Readable {
  const whole = content.subarray(0, end);
  const pieces = Array.from({ length: Math.ceil(end / 20_000) }, (_, index) => whole.subarray(index * 20_000, (index + 1) * 20_000));
  return Readable.from(pieces, { objectMode: false });
}

describe('A range of a source that closes before its reader begins', () => {
  test('has all bytes', async () => {
    const source = sourceOf(size);
    const range = rangeOf(source, { offset: 0, length: size }, size, () => {});
    await once(source, 'close');
    assert.ok((await buffer(range)).equals(content));
  });

  test('fails if bytes are missing', async () => {
    const source = sourceOf(size - 1);
    const range = rangeOf(source, { offset: 0, length: size }, size, () => {});
    await once(source, 'close');
    await assert.rejects(buffer(range), /the file ended too early/);
  });
});
