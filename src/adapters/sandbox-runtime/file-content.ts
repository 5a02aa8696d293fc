import { type Readable, Transform } from 'node:stream';
import { Failure } from '../../domain/failure.ts';
import type { FileEntry, FileType } from '../../domain/file-entry.ts';
import { onAbort, raceSignal } from '../../ports/abort-signals.ts';
import type { ByteRange } from '../../ports/sandbox-files.ts';
import { nodeStreamOf, webStreamOf } from '../shared/node-streams.ts';

/**
 * Yields a content's chunks. When the signal fires, cancels the content, even if nobody reads it at that moment, and throws the signal's
 * reason to the one who waits for the next chunk, or asks for it later.
 */
export async function* chunksUntil(content: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  const source = nodeStreamOf(content).on('error', () => {});
  // Does not wait for the end of the cancellation, since a content that stalls may never end.
  using _ = onAbort(signal, () => source.destroy());
  const chunks: AsyncIterator<Uint8Array> = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await raceSignal(chunks.next(), signal);
      if (done === true) return;
      yield value;
    }
  } finally {
    source.destroy();
  }
}

export function wrongFileType(path: string, fileType: FileType): Failure<'wrong_file_type'> {
  return new Failure('wrong_file_type', { path, fileType });
}

export function requireFile({ path, type }: Pick<FileEntry, 'path' | 'type'>): void {
  if (type !== 'file') throw wrongFileType(path, type);
}

/**
 * Throws if a write or move must not replace an entry of this type by the other one. A write replaces a link if it has no target. A
 * directory replaces nothing.
 */
export function requireReplaceable(path: string, type: FileType, by: FileType = 'file'): void {
  if (by === 'directory' || (type !== 'file' && type !== 'symlink')) throw wrongFileType(path, type);
}

/** How many bytes are read ahead, so that a slow end of a small file does not block the other end. */
export const readAheadBytes = 1 << 20;

/**
 * Returns a range of the source's next `size` bytes, counted from there. Calls `close` at the end, also after an error. To abort it,
 * destroy the source.
 */
export function rangeOf(
  source: Readable, { offset, length: wanted }: ByteRange, size: number, close: () => void,
): ReadableStream<Uint8Array> {
  const length = Math.max(0, Math.min(wanted, size - offset));
  const end = length === 0 ? 0 : offset + length;
  let at = 0;
  const part = new Transform({
    readableHighWaterMark: readAheadBytes,
    transform(chunk: Uint8Array, _encoding, done) {
      const inside = chunk.subarray(Math.max(0, offset - at), Math.max(0, end - at));
      at += chunk.length;
      if (inside.length > 0) part.push(inside);
      if (at >= end) finish();
      done();
    },
    flush: (done) => done(at < end ? new Error('the file ended too early') : null),
    destroy(error, done) {
      close();
      done(error);
    },
  });
  function finish(): void {
    source.unpipe(part);
    part.end();
    close();
  }
  source.once('error', (error) => part.destroy(error));
  // After a proper end, `part` may still hold chunks for a slow reader. Its `flush` then finds out whether bytes are missing.
  source.once('close', () => !source.readableEnded && at < end && part.destroy(new Error('the file ended too early')));
  if (length > 0) source.pipe(part);
  else finish();
  return webStreamOf(part);
}
