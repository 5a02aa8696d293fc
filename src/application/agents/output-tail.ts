const keptBytes = 4096;

/** Reads a stream to its end, so that its writer is never held back, and keeps the end of it. */
export class OutputTail {
  /** Settles when the stream has ended. Never rejects. */
  readonly ended: Promise<void>;
  #kept = new Uint8Array();
  #isCut = false;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.ended = this.#drain(stream);
  }

  /** What was kept, as it was written. */
  get text(): string {
    const begins = this.#isCut ? this.#kept.findIndex((byte) => !isContinuation(byte)) : 0;
    return new TextDecoder().decode(this.#kept.subarray(Math.max(0, begins)));
  }

  /** Was there more before it? */
  get isCut(): boolean {
    return this.#isCut;
  }

  async #drain(stream: ReadableStream<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of stream) this.#keep(chunk);
    } catch {
      // It ended by a fault of the connection; what was kept is all that will be known.
    }
  }

  #keep(chunk: Uint8Array): void {
    this.#isCut ||= this.#kept.length + chunk.length > keptBytes;
    const joined = new Uint8Array(this.#kept.length + Math.min(chunk.length, keptBytes));
    joined.set(this.#kept);
    joined.set(chunk.subarray(-keptBytes), this.#kept.length);
    this.#kept = joined.slice(-keptBytes);
  }
}

/** Is it a later byte of a character in UTF-8? */
function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}
