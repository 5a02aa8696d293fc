const keptCharacters = 4096;

/** Reads the standard error of an agent to its end, so that its writer never blocks, and keeps the last characters. */
export class ErrorOutput {
  /** Resolves when the stream has ended. Never rejects. */
  readonly ended: Promise<void>;
  text = '';
  /** True if something before the text was dropped. */
  isCut = false;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.ended = this.#drain(stream);
  }

  async #drain(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of stream) {
        const text = this.text + decoder.decode(chunk, { stream: true });
        this.isCut ||= text.length > keptCharacters;
        this.text = text.slice(-keptCharacters);
      }
    } catch {
      // The connection failed. The text read before stays.
    }
  }
}
