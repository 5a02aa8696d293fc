import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { extract, type Header } from 'tar-stream';
import { blockBytes, tarEnd, tarEntry } from '../../shared/packed-tar.ts';

export async function* tarOfOne(...entry: Parameters<typeof tarEntry>): AsyncGenerator<Uint8Array, void> {
  yield* tarEntry(...entry);
  yield tarEnd;
}

/** The types of entries that extend the header of the next one. */
const extensions = new Set(['x', 'g', 'L', 'K']);

/** Reads a tar up to the content of its first entry. The stream then continues with the content. Null if there is no entry. */
export async function readHead(tar: Readable): Promise<Header | null> {
  const extractor = extract();
  const found = Promise.withResolvers<Header>();
  extractor.on('entry', (header) => found.resolve(header));
  extractor.on('error', (error: Error) => found.reject(error));
  for (;;) {
    const block = await readExactly(tar, blockBytes);
    // Only a block of zeros is the end: a header whose name is in an extension can begin with zeros.
    if (block === null || block.every((byte) => byte === 0)) return null;
    extractor.write(block);
    if (!extensions.has(String.fromCharCode(block[typeOffset] ?? 0))) break;
    const size = Number.parseInt(block.toString('latin1', sizeOffset, sizeOffset + 11), 8);
    if (size > 0) extractor.write(await readExactly(tar, Math.ceil(size / blockBytes) * blockBytes));
  }
  return await found.promise.finally(() => extractor.destroy());
}

// The offsets in a block of the format ustar.
const typeOffset = 156;
const sizeOffset = 124;

/** Returns null if the stream has ended. */
async function readExactly(stream: Readable, bytes: number): Promise<Buffer | null> {
  for (;;) {
    const block: unknown = stream.read(bytes);
    if (block instanceof Buffer) return block.length === bytes ? block : null;
    if (stream.readableEnded || stream.destroyed) return null;
    const over = new AbortController();
    const { signal } = over;
    await Promise.race([once(stream, 'readable', { signal }), once(stream, 'end', { signal }), once(stream, 'close', { signal })])
      .finally(() => over.abort());
  }
}
