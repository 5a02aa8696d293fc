import { raceSignal } from '../../../ports/abort-signals.ts';
import { readAheadBytes } from '../file-content.ts';
import { refusedFiles } from '../sandbox-path.ts';

export type Chunks = AsyncGenerator<Uint8Array, void>;

/**
 * Reads the start of a content into memory, up to the read-ahead limit. A short content is then complete, even if it arrives slowly. `all`
 * yields the whole content. `size` is its length, or null if only a part was read.
 */
export async function readStart(content: Chunks): Promise<{ readonly all: Chunks; readonly size: number | null }> {
  const start: Uint8Array[] = [];
  let bytes = 0;
  while (bytes < readAheadBytes) {
    const { done, value } = await content.next();
    if (done === true) return { all: joined(start, []), size: bytes };
    start.push(value);
    bytes += value.length;
  }
  return { all: joined(start, content), size: null };
}

/** Keeps the start in memory only until it is read. */
async function* joined(start: Uint8Array[], rest: AsyncIterable<Uint8Array> | readonly []): Chunks {
  yield* start.splice(0);
  yield* rest;
}

/** A content is fast if this many bytes arrive within this time. */
const fastBytes = 16 << 20;
const fastMs = 1_000;

/** Yields a content while it arrives fast. {@link rest} yields the remaining part. */
export class FastPart {
  readonly #chunks: Chunks;
  #next: Promise<IteratorResult<Uint8Array>> | null = null;
  /** True if there is a rest. */
  isLate = false;
  bytes = 0;

  constructor(content: Chunks) {
    this.#chunks = content;
  }

  async *[Symbol.asyncIterator](): Chunks {
    let late = AbortSignal.timeout(fastMs);
    try {
      for (let until = fastBytes; ; ) {
        this.#next = this.#chunks.next();
        const { done, value } = await raceSignal(this.#next, late);
        if (done === true) return;
        this.bytes += value.length;
        yield value;
        if (this.bytes < until) continue;
        until = this.bytes + fastBytes;
        late = AbortSignal.timeout(fastMs);
      }
    } catch (error) {
      this.isLate = late.aborted && error === late.reason;
      if (!this.isLate) throw error;
    }
  }

  /** Yields the remaining part. Must be called after the fast part has ended. */
  async *rest(): Chunks {
    const next = await this.#next;
    if (next === null || next.done === true) return;
    yield next.value;
    yield* this.#chunks;
  }
}

/** Yields the content. Throws `invalid_request` if its length is not `size`. */
export async function* ofSize(content: Chunks, size: number): Chunks {
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.length;
    if (bytes > size) break;
    yield chunk;
  }
  if (bytes !== size) throw refusedFiles('path', `the content does not have the announced length of ${size} bytes`);
}

const partBytes = 1 << 20;

/** Yields the content in large parts, since many small ones cost the engine more time. */
export async function* inLargeParts(content: AsyncIterable<Uint8Array>): Chunks {
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of content) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes < partBytes) continue;
    yield Buffer.concat(chunks);
    chunks = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(chunks);
}
