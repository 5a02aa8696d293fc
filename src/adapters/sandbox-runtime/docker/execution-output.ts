import { type Duplex, PassThrough } from 'node:stream';
import { parseBeginning, type Leader } from './shell-scripts.ts';
import { createFrameReader } from './stream-frames.ts';

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
  readonly #beginning = Promise.withResolvers<Beginning>();
  /** The leading process. If the connection ended before the command began: the message that the engine sent instead. */
  readonly begun = this.#beginning.promise;
  /** The start of the standard output until its first line is complete. Then null. */
  #firstLine: Buffer | null = Buffer.alloc(0);
  #isReleased = false;

  /** A terminal's output has no frames, and all of it is standard output. */
  constructor(socket: Duplex, isTerminal: boolean) {
    this.#socket = socket;
    const receive = (stream: 'stdout' | 'stderr', content: Buffer): void => {
      if (stream === 'stderr') this.#write(this.stderr, content);
      else if (this.#firstLine === null) this.#write(this.stdout, content);
      else this.#readFirstLine(Buffer.concat([this.#firstLine, content]));
    };
    const read = isTerminal ? (chunk: Buffer) => receive('stdout', chunk) : createFrameReader(receive);
    socket.on('data', (chunk: Buffer) => {
      read(chunk);
      if (!this.#isFull() || this.#isReleased) return;
      // Nobody can read before the command has begun, so nothing is paused until then.
      if (this.#firstLine !== null) {
        if (this.stderr.writableLength > releasedBytes) this.refuse();
        return;
      }
      socket.pause();
      this.onHeld();
    });
    socket.once('close', () => {
      this.#beginning.resolve({ refusal: this.#firstLine?.toString().trim() ?? '' });
      for (const output of [this.stdout, this.stderr]) output.end();
    });
    for (const output of [this.stdout, this.stderr]) output.on('drain', () => this.#isFull() || socket.resume());
    // The engine has finished, and accepts no more input.
    socket.once('end', () => socket.destroy());
    socket.on('error', () => {});
  }

  /** Ends the connection to an execution that does not begin as Skep's scripts do. */
  refuse(): void {
    this.#beginning.resolve({ refusal: 'its /bin/sh does not run commands' });
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

  #write(output: PassThrough, content: Buffer): void {
    if (output.writableEnded) return;
    if (this.#isReleased && output.writableLength > releasedBytes) output.end();
    else output.write(content);
  }

  /** The first line of the standard output names the leader. */
  #readFirstLine(start: Buffer): void {
    const lineEnd = start.indexOf('\n');
    const leader = lineEnd < 0 ? null : parseBeginning(start.toString('latin1', 0, lineEnd).trimEnd());
    if (leader === null) {
      this.#firstLine = start.subarray(0, beginningBytes);
      if (start.length > beginningBytes) this.refuse();
      return;
    }
    this.#write(this.stdout, start.subarray(lineEnd + 1));
    this.#firstLine = null;
    this.#beginning.resolve(leader);
  }
}
