/** A line that a shell prints into the output of its commands, after its mark. See `shellCommand`, and `codeMark` of the supervisor. */
interface MarkedLine {
  /** `begin` of a command, the exit `code` of a durable one, or the `end`: nothing of it writes to this output any more. */
  readonly event: string;
  /** The exit code; 0 for `begin`. */
  readonly code: number;
}

const afterMark = /^ (begin|code|end) (\d{1,3})\n/;
const longestAfterMark = ' begin 255\n'.length;

/** Divides an output of a shell at its marks. */
export class MarkedOutput {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #mark: Buffer;
  /** The bytes that are read, but not yet returned. */
  #rest: Buffer = Buffer.alloc(0);

  /** The first byte of the mark must not be in it twice. */
  constructor(stream: ReadableStream<Uint8Array>, mark: string) {
    this.#reader = stream.getReader();
    this.#mark = Buffer.from(mark);
  }

  /** Returns the next bytes or the next marked line. Null at the end of the output. */
  async next(): Promise<Uint8Array | MarkedLine | null> {
    for (;;) {
      const output = this.#take(this.#markIndex());
      if (output.length > 0) return output;
      const after = this.#rest.toString('latin1', this.#mark.length, this.#mark.length + longestAfterMark);
      const [line, event = '', code] = afterMark.exec(after) ?? [];
      if (line !== undefined) {
        this.#take(this.#mark.length + line.length);
        return { event, code: Number(code) };
      }
      if (after.length === longestAfterMark) return this.#take(1);
      const { value } = await this.#reader.read();
      if (value === undefined) return this.#rest.length > 0 ? this.#take(this.#rest.length) : null;
      // Almost always nothing is left, and then nothing is copied.
      this.#rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, value]) : Buffer.from(value.buffer, value.byteOffset, value.length);
    }
  }

  #take(bytes: number): Buffer {
    const taken = this.#rest.subarray(0, bytes);
    this.#rest = this.#rest.subarray(bytes);
    return taken;
  }

  /** Returns where a mark begins in the rest, also if only its first bytes are there. The rest's length if there is none. */
  #markIndex(): number {
    const whole = this.#rest.indexOf(this.#mark);
    if (whole >= 0) return whole;
    const part = this.#rest.lastIndexOf(this.#mark[0] ?? 0);
    return part >= 0 && this.#mark.subarray(0, this.#rest.length - part).equals(this.#rest.subarray(part)) ? part : this.#rest.length;
  }
}
