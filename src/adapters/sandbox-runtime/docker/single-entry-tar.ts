import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { extract, type Header, pack } from 'tar-stream';
import { type TarHeader, withPax } from '../../shared/packed-tar.ts';

const blockBytes = 512;

/**
 * Yields a tar of one entry. Passes the content on unchanged, which is faster than `addEntry` with its several streams. If the content is
 * shorter than the header says, the tar ends with it.
 */
export async function* tarOfOne(header: TarHeader, content?: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const { size = 0 } = header;
  let left = size;
  yield await headOf({ ...header, size });
  for await (const chunk of content ?? []) {
    left -= chunk.length;
    yield chunk;
  }
  if (left === 0) yield Buffer.alloc(paddingOf(size) + 2 * blockBytes);
}

function paddingOf(size: number): number {
  return (blockBytes - (size % blockBytes)) % blockBytes;
}

/** Returns the blocks of a tar before the entry's content. */
async function headOf(header: TarHeader): Promise<Uint8Array> {
  const tar = pack();
  tar.on('error', () => {});
  tar.entry(withPax(header), () => {}).on('error', () => {});
  await once(tar, 'readable');
  const parts: Uint8Array[] = [];
  for (let part: unknown = tar.read(); part instanceof Uint8Array; part = tar.read()) parts.push(part);
  tar.destroy();
  return Buffer.concat(parts);
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
    if (block === null || block[0] === 0) return null;
    extractor.write(block);
    if (!extensions.has(String.fromCharCode(block[typeOffset] ?? 0))) break;
    const size = Number.parseInt(block.toString('latin1', sizeOffset, sizeOffset + 11), 8);
    if (size > 0) extractor.write(await readExactly(tar, size + paddingOf(size)));
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
