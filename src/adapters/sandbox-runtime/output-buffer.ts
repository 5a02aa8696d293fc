import type { KeptOutput } from '../../domain/execution.ts';
import { Failure } from '../../domain/failure.ts';
import { raceSignal } from '../../ports/abort-signals.ts';
import type { OutputRequest } from '../../ports/sandbox-executions.ts';

/** Smaller pieces are collected in blocks of this size. */
const blockBytes = 4_096;

export function dropped(oldest: number): Failure<'output_dropped'> {
  return new Failure('output_dropped', { oldest });
}

/** How far a reader that holds the writer may be behind. It is less than the bytes that a buffer keeps. */
const maxBehindBytes = 1 << 20;

/** The newest bytes of an output, in memory. Any number of readers can follow them. */
export class OutputBuffer implements KeptOutput {
  readonly #limitBytes: number;
  readonly #blocks: { readonly start: number; readonly bytes: Uint8Array; length: number }[] = [];
  #end = 0;
  #isOver = false;
  #isReleased = false;
  #changed = Promise.withResolvers<void>();
  /** The positions of the readers that hold the writer. */
  readonly #blockingReaders = new Set<{ at: number }>();

  /** Keeps at least this many bytes. */
  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get oldest(): number {
    return this.#blocks[0]?.start ?? this.#end;
  }

  get end(): number {
    return this.#end;
  }

  get keptBytes(): number {
    return this.#end - this.oldest;
  }

  drop(): void {
    this.#blocks.length = 0;
  }

  append(chunk: Uint8Array): void {
    if (chunk.length === 0 || this.#isOver) return;
    const last = this.#blocks.at(-1);
    if (last !== undefined && last.length + chunk.length <= last.bytes.length) {
      last.bytes.set(chunk, last.length);
      last.length += chunk.length;
    } else if (chunk.length >= blockBytes) {
      this.#blocks.push({ start: this.#end, bytes: chunk, length: chunk.length });
    } else {
      const bytes = new Uint8Array(blockBytes);
      bytes.set(chunk);
      this.#blocks.push({ start: this.#end, bytes, length: chunk.length });
    }
    this.#end += chunk.length;
    for (let next = this.#blocks[1]; next !== undefined && this.#end - next.start >= this.#limitBytes; next = this.#blocks[1]) {
      this.#blocks.shift();
    }
    this.#wake();
  }

  finish(): void {
    this.#isOver = true;
    this.#wake();
  }

  /** Waits until no reader that holds the writer is too far behind. */
  async untilWriterMayContinue(): Promise<void> {
    while (!this.#isReleased && [...this.#blockingReaders].some(({ at }) => this.#end - at > maxBehindBytes)) await this.#changed.promise;
  }

  /** From now on, no reader holds the writer. */
  release(): void {
    this.#isReleased = true;
    this.#wake();
  }

  /**
   * Yields the bytes from the offset `after` on, up to the present end, or with `follow` to the end of the output. Bytes that are no longer
   * in memory come from `older`. Without `older`, throws `output_dropped`.
   */
  async *read(
    { after, follow, hold = false }: Omit<OutputRequest, 'stream'>, signal: AbortSignal,
    older?: (at: number, signal: AbortSignal) => AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array, void> {
    const until = follow ? Infinity : this.#end;
    const reader = { at: after };
    const advance = (bytes: number): void => {
      reader.at += bytes;
      if (hold) this.#wake();
    };
    if (hold && follow) this.#blockingReaders.add(reader);
    try {
      while (reader.at < until) {
        if (reader.at < this.oldest) {
          if (older === undefined) throw dropped(this.oldest);
          const from = reader.at;
          for await (const chunk of older(from, signal)) {
            yield chunk;
            advance(chunk.length);
          }
          if (reader.at === from) throw dropped(this.oldest);
          continue;
        }
        const chunk = this.#chunkAt(reader.at).subarray(0, until - reader.at);
        if (chunk.length > 0) {
          yield chunk;
          advance(chunk.length);
        } else if (this.#isOver) return;
        else await raceSignal(this.#changed.promise, signal);
      }
    } finally {
      this.#blockingReaders.delete(reader);
      this.#wake();
    }
  }

  #chunkAt(offset: number): Uint8Array {
    const block = this.#blocks.findLast(({ start }) => start <= offset);
    return block === undefined ? new Uint8Array(0) : block.bytes.subarray(offset - block.start, block.length);
  }

  /** Wakes all readers and the writer. */
  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

/** Drops the longest outputs, and of equal ones the first, until the others are within a limit. So a flood drops no short output. */
export function dropLongest(buffers: readonly OutputBuffer[], limitBytes: number): void {
  let bytes = buffers.reduce((sum, { keptBytes }) => sum + keptBytes, 0);
  for (const buffer of buffers.toSorted((one, other) => other.keptBytes - one.keptBytes)) {
    if (bytes <= limitBytes) return;
    bytes -= buffer.keptBytes;
    buffer.drop();
  }
}
