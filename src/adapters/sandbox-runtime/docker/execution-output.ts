import { type Duplex, PassThrough } from 'node:stream';
import { parseBeginning, type Leader } from './shell-scripts.ts';

/** How much of an output that nobody reads is kept, about as much as a pipe holds, before both outputs are held back. */
const heldBytes = 64 * 1024;
/** More than an engine and its pipes hold of an execution. */
const releasedBytes = 8 * 1024 * 1024;
/** Longer than the line that an execution begins with, and than the engine's message about one that it can't begin. */
const beginningBytes = 4096;

/** The two outputs of an execution, which the engine sends interleaved over one connection. */
export class ExecutionOutput {
  readonly stdout = new PassThrough({ highWaterMark: heldBytes });
  readonly stderr = new PassThrough({ highWaterMark: heldBytes });
  /** Called each time that the command begins to be held back. */
  onHeld: () => void = () => {};
  readonly #socket: Duplex;
  readonly #begun = Promise.withResolvers<Leader | { readonly refusal: string }>();
  /** The process that leads it. If the connection ended before the command began: the message sent in its place. */
  readonly begun = this.#begun.promise;
  /** What came of the standard output before its first line was complete. Null from then on. */
  #beginning: Buffer | null = Buffer.alloc(0);
  #isReleased = false;

  /** A terminal's output comes as it is, and is all standard output. */
  constructor(socket: Duplex, isTerminal: boolean) {
    this.#socket = socket;
    const give = (stream: 'stdout' | 'stderr', content: Buffer): void => {
      if (stream === 'stderr') this.#give(this.stderr, content);
      else if (this.#beginning === null) this.#give(this.stdout, content);
      else this.#begin(Buffer.concat([this.#beginning, content]));
    };
    const read = isTerminal ? (chunk: Buffer) => give('stdout', chunk) : createFrameReader(give);
    socket.on('data', (chunk: Buffer) => {
      read(chunk);
      // Until the command has begun nobody can read, and nothing is held back.
      if (!this.#isFull() || this.#beginning !== null || this.#isReleased) return;
      socket.pause();
      this.onHeld();
    });
    socket.once('close', () => {
      this.#begun.resolve({ refusal: this.#beginning?.toString().trim() ?? '' });
      for (const output of [this.stdout, this.stderr]) output.end();
    });
    for (const output of [this.stdout, this.stderr]) output.on('drain', () => this.#isFull() || socket.resume());
    // The engine is done with it, and takes no input any more either.
    socket.once('end', () => socket.destroy());
    socket.on('error', () => {});
  }

  /** Is the command held back, since nobody reads what it wrote? */
  isHeld(): boolean {
    return this.#socket.isPaused();
  }

  /**
   * Holds nothing back any more. To be called when the command has ended: an engine with unread output does not stop the container.
   * What was written is kept for a later reader; what processes that are left behind write on, is kept up to a limit.
   */
  release(): void {
    this.#isReleased = true;
    this.#socket.resume();
  }

  #isFull(): boolean {
    return this.stdout.writableNeedDrain || this.stderr.writableNeedDrain;
  }

  #give(output: PassThrough, content: Buffer): void {
    if (output.writableEnded) return;
    if (this.#isReleased && output.writableLength > releasedBytes) output.end();
    else output.write(content);
  }

  /** The first line of the standard output names the leader. */
  #begin(beginning: Buffer): void {
    const lineEnd = beginning.indexOf('\n');
    const leader = lineEnd < 0 ? null : parseBeginning(beginning.toString('latin1', 0, lineEnd).trimEnd());
    if (leader === null) {
      this.#beginning = beginning.subarray(0, beginningBytes);
      return;
    }
    this.#give(this.stdout, beginning.subarray(lineEnd + 1));
    this.#beginning = null;
    this.#begun.resolve(leader);
  }
}

const headerBytes = 8;

/**
 * Takes apart what the engine sends of an execution or a log: frames of one byte for the output (2 is the standard error), three zero
 * bytes,
 * the length in four bytes, and the content. The content of a frame is passed on in as many pieces as it arrives in, each with how many
 * bytes of the frame are still to come.
 */
export function createFrameReader(give: (stream: 'stdout' | 'stderr', content: Buffer, toCome: number) => void): (chunk: Buffer) => void {
  let header = Buffer.alloc(0);
  let missing = 0;
  let stream: 'stdout' | 'stderr' = 'stdout';
  return (chunk) => {
    for (let rest = chunk; rest.length > 0; ) {
      if (missing > 0) {
        const content = rest.subarray(0, missing);
        rest = rest.subarray(content.length);
        missing -= content.length;
        give(stream, content, missing);
        continue;
      }
      const wanted = headerBytes - header.length;
      header = Buffer.concat([header, rest.subarray(0, wanted)]);
      rest = rest.subarray(wanted);
      if (header.length < headerBytes) continue;
      stream = header[0] === 2 ? 'stderr' : 'stdout';
      missing = header.readUInt32BE(4);
      header = Buffer.alloc(0);
    }
  };
}
