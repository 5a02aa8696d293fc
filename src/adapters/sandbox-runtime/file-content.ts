import { type Readable, Transform } from 'node:stream';
import { Failure } from '../../domain/failure.ts';
import type { FileEntry, FileType } from '../../domain/file-entry.ts';
import type { ByteRange } from '../../ports/sandbox-files.ts';
import { nodeStreamOf, webStreamOf } from '../shared/node-streams.ts';
import { raceSignal } from '../shared/timeout.ts';
import { refusedFiles } from './sandbox-path.ts';

export type Chunks = AsyncIterable<Uint8Array>;

/** Yields a content's chunks. Throws the signal's reason as soon as it fires, even while it waits for the next chunk. */
export async function* chunksUntil(content: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  const source = nodeStreamOf(content).on('error', () => {});
  const chunks: AsyncIterator<Uint8Array> = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await raceSignal(chunks.next(), signal);
      if (done === true) return;
      yield value;
    }
  } finally {
    // Does not wait for the end, since a content that stalls may never end.
    source.destroy();
  }
}

export function wrongFileType(path: string, fileType: FileType): Failure<'wrong_file_type'> {
  return new Failure('wrong_file_type', { path, fileType });
}

export function demandFile({ path, type }: Pick<FileEntry, 'path' | 'type'>): void {
  if (type !== 'file') throw wrongFileType(path, type);
}

/** How many bytes are read ahead, so that a slow reader of a small file does not block the source. */
const readAheadBytes = 1 << 20;

/** Returns a range of the source's next `size` bytes. Calls `close` at the end, also after an error. */
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
  source.once('close', () => at < end && part.destroy(new Error('the file ended too early')));
  if (length > 0) source.pipe(part);
  else finish();
  return webStreamOf(part);
}

/** A content whose first bytes have been read. */
export interface Begun {
  readonly all: AsyncIterable<Uint8Array>;
  /** The content's length. Null if unknown, because only a part was read. */
  readonly size: number | null;
}

/** Reads the start of a content into memory, up to the read-ahead limit. A short content is then complete, even if it arrives slowly. */
export async function begin(content: Chunks): Promise<Begun> {
  const iterator = content[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let bytes = 0;
  let isWhole = false;
  while (!isWhole && bytes < readAheadBytes) {
    const { done, value } = await iterator.next();
    if (done === true) isWhole = true;
    else {
      first.push(value);
      bytes += value.length;
    }
  }
  const all = async function* all(): AsyncGenerator<Uint8Array, void> {
    yield* first.splice(0);
    if (!isWhole) yield* { [Symbol.asyncIterator]: () => iterator };
  };
  return { all: all(), size: isWhole ? bytes : null };
}

/** A content is fast if this many bytes arrive within this time. */
const fastBytes = 16 << 20;
const fastMs = 1_000;

/** Yields a content while it arrives fast. {@link rest} yields the remaining part. */
export class FastPart {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #next: Promise<IteratorResult<Uint8Array>> | null = null;
  #isLate = false;
  #bytes = 0;

  constructor(content: Chunks) {
    this.#chunks = content[Symbol.asyncIterator]();
  }

  /** The number of yielded bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** True if there is a rest. */
  get isLate(): boolean {
    return this.#isLate;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    let late = AbortSignal.timeout(fastMs);
    try {
      for (let until = fastBytes; ; ) {
        this.#next = this.#chunks.next();
        const { done, value } = await raceSignal(this.#next, late);
        if (done === true) return;
        this.#bytes += value.length;
        yield value;
        if (this.#bytes < until) continue;
        until = this.#bytes + fastBytes;
        late = AbortSignal.timeout(fastMs);
      }
    } catch (error) {
      this.#isLate = late.aborted && error === late.reason;
      if (!this.#isLate) throw error;
    } finally {
      if (!this.#isLate) await this.#chunks.return?.();
    }
  }

  /** Yields the remaining part. Must be called after the fast part has ended. */
  async *rest(): AsyncGenerator<Uint8Array, void> {
    const next = await this.#next;
    if (next === null || next.done === true) return;
    yield next.value;
    yield* { [Symbol.asyncIterator]: () => this.#chunks };
  }
}

/** Yields the content. Throws `invalid_request` if its length is not `size`. */
export async function* ofSize(content: Chunks, size: number): AsyncGenerator<Uint8Array, void> {
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.length;
    if (bytes > size) break;
    yield chunk;
  }
  if (bytes !== size) throw refusedFiles('path', `the content has not the ${size} bytes that it was said to have`);
}
