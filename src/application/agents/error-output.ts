const keptCharacters = 4096;

/** The last characters of an output. */
export class LastOutput {
  text = '';
  /** True if something before the text was dropped. */
  isCut = false;

  add(text: string): void {
    this.isCut ||= this.text.length + text.length > keptCharacters;
    // The part of a string keeps the whole string in memory, so it is copied.
    this.text = new TextDecoder().decode(new TextEncoder().encode((this.text + text).slice(-keptCharacters)));
  }
}

/** Reads the standard error of an agent to its end, so that its writer never blocks. */
export class ErrorOutput extends LastOutput {
  /** Resolves when the stream has ended. Never rejects. */
  readonly ended: Promise<void>;

  constructor(stream: ReadableStream<Uint8Array>) {
    super();
    this.ended = this.#drain(stream);
  }

  async #drain(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of stream) this.add(decoder.decode(chunk, { stream: true }));
    } catch {
      // The connection failed. The text read before stays.
    }
  }
}
