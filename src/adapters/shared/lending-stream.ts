import { Readable } from 'node:stream';

/**
 * A stream whose chunks all come in one buffer. As a stream, it copies them. Whoever is done with a chunk before it asks for the next one
 * reads them uncopied, by {@link lent}, which makes no garbage however much passes.
 */
export class LendingStream extends Readable {
  readonly #next: () => Promise<Uint8Array | null>;
  readonly #close: (error: Error | null) => void;

  /** `next` returns what comes next, which stays as it is until the next call, or null at the end. `close` is called when all is over. */
  constructor(next: () => Promise<Uint8Array | null>, close: (error: Error | null) => void) {
    super();
    this.#next = next;
    this.#close = close;
  }

  /** Each chunk stays as it is until the next one is asked for. To be called instead of all else that reads. */
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
