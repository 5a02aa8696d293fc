import { Readable } from 'node:stream';

/**
 * A stream whose source reuses one buffer for all chunks. The stream interface copies each chunk. A reader that has finished with a chunk
 * before it requests the next one can use {@link lent}, which copies nothing and creates no garbage.
 */
export class LendingStream extends Readable {
  readonly #next: () => Promise<Uint8Array | null>;
  readonly #close: (error: Error | null) => void;

  /** `next` returns the next chunk, which is valid until the next call, or null at the end. `close` is called once, at the end. */
  constructor(next: () => Promise<Uint8Array | null>, close: (error: Error | null) => void) {
    super();
    this.#next = next;
    this.#close = close;
  }

  /** Yields chunks without a copy. Each one is valid until the next one is requested. Must not be combined with other ways to read. */
  async *lent(): AsyncGenerator<Uint8Array, void> {
    try {
      for (let chunk = await this.#next(); chunk !== null; chunk = await this.#next()) yield chunk;
    } finally {
      this.destroy();
    }
  }

  override _read(): void {
    this.#next().then((chunk) => this.push(chunk === null ? null : Buffer.from(chunk)), (error: Error) => this.destroy(error));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#close(error);
    done(error);
  }
}
