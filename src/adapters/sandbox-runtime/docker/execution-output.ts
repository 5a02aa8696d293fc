import { type Duplex, PassThrough } from 'node:stream';
import { parseBeginning, type Leader } from './shell-scripts.ts';

/** How many unread bytes of an output are buffered, about as many as in a pipe. If one buffer is full, both outputs are paused. */
const heldBytes = 64 * 1024;
/** The limit of unread bytes before the begin and after the release. It is more than the engine and its pipes buffer for an execution. */
const releasedBytes = 8 * 1024 * 1024;
/** Longer than the first line of an execution, and than the engine's message if it can't start one. */
const beginningBytes = 4096;

/** The leading process of an execution, or why it did not begin. */
export type Beginning = Leader | { readonly refusal: string };

/** The two outputs of an execution, which the engine sends interleaved over one connection. */
export class ExecutionOutput {
  readonly stdout = new PassThrough({ highWaterMark: heldBytes });
  readonly stderr = new PassThrough({ highWaterMark: heldBytes });
  /** Called each time that the output is paused, which makes the command wait. */
  onHeld: () => void = () => {};
  readonly #socket: Duplex;
  readonly #begun = Promise.withResolvers<Beginning>();
  /** The leading process. If the connection ended before the command began: the message that the engine sent instead. */
  readonly begun = this.#begun.promise;
  /** The start of the standard output until its first line is complete. Then null. */
  #beginning: Buffer | null = Buffer.alloc(0);
  #isReleased = false;

  /** A terminal's output has no frames, and all of it is standard output. */
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
      if (!this.#isFull() || this.#isReleased) return;
      // Nobody can read before the command has begun, so nothing is paused until then.
      if (this.#beginning !== null) {
        if (this.stderr.writableLength > releasedBytes) this.refuse();
        return;
      }
      socket.pause();
      this.onHeld();
    });
    socket.once('close', () => {
      this.#begun.resolve({ refusal: this.#beginning?.toString().trim() ?? '' });
      for (const output of [this.stdout, this.stderr]) output.end();
    });
    for (const output of [this.stdout, this.stderr]) output.on('drain', () => this.#isFull() || socket.resume());
    // The engine has finished, and accepts no more input.
    socket.once('end', () => socket.destroy());
    socket.on('error', () => {});
  }

  /** Ends the connection to an execution that does not begin as Skep's scripts do. */
  refuse(): void {
    this.#begun.resolve({ refusal: 'its /bin/sh does not run commands' });
    this.#socket.destroy();
  }

  /** Returns whether the command has to wait because nobody reads its output. */
  isHeld(): boolean {
    return this.#socket.isPaused();
  }

  /**
   * Stops pausing the output. Must be called after the command has ended: the engine can't stop a container with unread output. The
   * command's output stays buffered for a later reader. Output of processes that it left behind is buffered up to a limit.
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
      if (beginning.length > beginningBytes) this.refuse();
      return;
    }
    this.#give(this.stdout, beginning.subarray(lineEnd + 1));
    this.#beginning = null;
    this.#begun.resolve(leader);
  }
}

const headerBytes = 8;

/**
 * Decodes the engine's stream of an execution or a log. Each frame has one byte for the output (2 is the standard error), three zero bytes,
 * the length in four bytes, and the content. Passes the content on in the pieces in which it arrives, each with the number of missing bytes
 * of its frame.
 */
export function createFrameReader(
  onContent: (stream: 'stdout' | 'stderr', content: Buffer, toCome: number) => void,
): (chunk: Buffer) => void {
  let header = Buffer.alloc(0);
  let missing = 0;
  let stream: 'stdout' | 'stderr' = 'stdout';
  return (chunk) => {
    for (let rest = chunk; rest.length > 0; ) {
      if (missing > 0) {
        const content = rest.subarray(0, missing);
        rest = rest.subarray(content.length);
        missing -= content.length;
        onContent(stream, content, missing);
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
