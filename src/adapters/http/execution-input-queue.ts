/** How much input can wait before the client is paused, in bytes. */
const maxWaitingBytes = 256 * 1024;

export interface InputEvents {
  /** Called when too much input waits. */
  pause(): void;
  /** Called when more input is wanted. */
  resume(): void;
  failed(error: unknown): void;
}

type Write = (content: ReadableStream<Uint8Array>, close: boolean) => Promise<void>;

/** Writes input to an execution in one long write, so a single key press needs no call of its own. */
export class ExecutionInputQueue {
  readonly #write: Write;
  readonly #events: InputEvents;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** Resolves when all pushed input is written or has failed. */
  #writing: Promise<void> = Promise.resolve();

  constructor(write: Write, events: InputEvents) {
    this.#write = write;
    this.#events = events;
  }

  push(bytes: Uint8Array): void {
    const controller = (this.#controller ??= this.#begin());
    controller.enqueue(bytes);
    if ((controller.desiredSize ?? 0) <= 0) this.#events.pause();
  }

  /** Closes the input after all pushed input is written. */
  async close(): Promise<void> {
    this.end();
    await this.#writing;
    await this.#write(new Blob([]).stream(), true);
  }

  /** Stops accepting input. The input of the execution stays open. */
  end(): void {
    this.#controller?.close();
    this.#controller = null;
  }

  #begin(): ReadableStreamDefaultController<Uint8Array> {
    const opened: ReadableStreamDefaultController<Uint8Array>[] = [];
    const content = new ReadableStream<Uint8Array>(
      {
        start: (controller) => void opened.push(controller),
        pull: () => this.#events.resume(),
        cancel: () => this.#drop(opened[0]),
      },
      { highWaterMark: maxWaitingBytes, size: ({ length }) => length },
    );
    const [controller] = opened;
    if (controller === undefined) throw new Error('a stream calls start at once');
    this.#writing = this.#writing.then(() => this.#write(content, false)).catch((error: unknown) => {
      // The next input starts a new write.
      this.#drop(controller);
      this.#events.resume();
      this.#events.failed(error);
    });
    return controller;
  }

  #drop(controller: ReadableStreamDefaultController<Uint8Array> | undefined): void {
    if (this.#controller === controller) this.#controller = null;
  }
}
