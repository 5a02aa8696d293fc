import type { WebSocket } from 'ws';

/**
 * How much input can wait before the client is paused, in bytes. More than Skep's client sends without a confirmation: a pause would also
 * hold back the client's confirmations of output, and a command that waits for its reader reads no input.
 */
const maxWaitingBytes = 2 * 1024 * 1024;

interface ExecutionInputDeps {
  /** The client. It is paused while too much input waits. */
  readonly socket: Pick<WebSocket, 'pause' | 'resume'>;
  readonly write: (content: ReadableStream<Uint8Array>, close: boolean) => Promise<void>;
  /** Called with a number of bytes that no longer wait: they are passed on, or their write has failed. */
  readonly passed: (bytes: number) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Writes input to an execution in one long write, so a single key press needs no call of its own. After a failed write, all later input
 * fails too: the command must not get input with a gap.
 */
export class ExecutionInputQueue {
  readonly #deps: ExecutionInputDeps;
  #writer: WritableStreamDefaultWriter<Uint8Array> | null = null;
  /** Resolves when all pushed input is written. Rejects if any of it has failed. */
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: ExecutionInputDeps) {
    this.#deps = deps;
  }

  push(bytes: Uint8Array): void {
    const { socket, passed } = this.#deps;
    // The writer of a failed write has no size.
    if (this.#writer === null || this.#writer.desiredSize === null) this.#writer = this.#begin();
    const writer = this.#writer;
    void writer.write(bytes).catch(() => 'the write itself reports the failure').then(() => passed(bytes.length));
    if ((writer.desiredSize ?? 0) > 0) return;
    socket.pause();
    const resume = (): void => socket.resume();
    writer.ready.then(resume, resume);
  }

  /** Closes the input after all pushed input is written. */
  async close(): Promise<void> {
    this.end();
    await this.#writing;
    await this.#deps.write(new Blob([]).stream(), true);
  }

  /** Stops accepting input. The input of the execution stays open. */
  end(): void {
    this.#writer?.close().catch(() => 'the write itself reports the failure');
    this.#writer = null;
  }

  #begin(): WritableStreamDefaultWriter<Uint8Array> {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>(
      undefined, new ByteLengthQueuingStrategy({ highWaterMark: maxWaitingBytes }),
    );
    const writer = writable.getWriter();
    this.#writing = this.#writing.then(() => this.#deps.write(readable, false));
    this.#writing.catch((error: unknown) => {
      // A pipe that already reads it can't be cancelled here.
      readable.cancel(error).catch(() => writer.abort(error)).catch(() => 'the failure is reported below');
      this.#deps.failed(error);
    });
    return writer;
  }
}
