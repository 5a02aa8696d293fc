const keptBytes = 4096;

/** Reads a stream to its end, so that its writer is never held back, and keeps the end of it. */
export class OutputTail {
  /** Settles when the stream has ended. Never rejects. */
  readonly ended: Promise<void>;
  #kept = new Uint8Array();

  constructor(stream: ReadableStream<Uint8Array>) {
    this.ended = this.#drain(stream);
  }

  /** What was kept, as text on one line. */
  get text(): string {
    return new TextDecoder().decode(this.#kept).replaceAll(/[\p{Cc}\s]+/gu, ' ').trim();
  }

  async #drain(stream: ReadableStream<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of stream) this.#keep(chunk);
    } catch {
      // It ended by a fault of the connection; what was kept is all that will be known.
    }
  }

  #keep(chunk: Uint8Array): void {
    const joined = new Uint8Array(this.#kept.length + Math.min(chunk.length, keptBytes));
    joined.set(this.#kept);
    joined.set(chunk.subarray(-keptBytes), this.#kept.length);
    this.#kept = joined.slice(-keptBytes);
  }
}
