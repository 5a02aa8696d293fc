import type { OpenExecution } from '../../ports/sandbox-executions.ts';

const nothing = new Uint8Array(0);
const newline = Uint8Array.of(0x0a);

/** The standard input of an agent. The agent gets only the part of a turn's input that an earlier process has not written. */
export class AgentInput {
  readonly stream: WritableStream<Uint8Array>;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  /** What an earlier process has written since the turn began. */
  #earlier: OpenExecution['handedOver'];
  #offset: number;
  #nextWrite = Promise.withResolvers<void>();

  /** `began` is the offset at which an earlier process began a turn. Null if there is no such turn. */
  constructor({ stdin, handedOver }: Pick<OpenExecution, 'stdin' | 'handedOver'>, began: number | null) {
    this.#writer = stdin.getWriter();
    this.#writer.closed.catch(() => {});
    this.#earlier = { ...handedOver, bytes: began === null ? 0 : handedOver.bytes - began };
    this.#offset = handedOver.bytes;
    this.stream = new WritableStream<Uint8Array>({
      write: (chunk) => this.#write(chunk),
      close: () => this.#writer.close(),
      abort: (reason) => this.#writer.abort(reason),
    });
  }

  /** The number of bytes that were written, also by earlier processes. */
  get offset(): number {
    return this.#offset;
  }

  /** Resolves when the session writes next. */
  get nextWrite(): Promise<void> {
    return this.#nextWrite.promise;
  }

  /** Continues a turn that began without a message. */
  async skipMessage(): Promise<void> {
    await this.#write(nothing);
  }

  async #write(chunk: Uint8Array): Promise<void> {
    const bytes = missingPart(chunk, this.#earlier);
    this.#earlier = { bytes: 0, isCut: false };
    this.#nextWrite.resolve();
    this.#nextWrite = Promise.withResolvers();
    this.#offset += bytes.length;
    if (bytes.length > 0) await this.#writer.write(bytes);
  }
}

/** Returns the part of a turn's first input that the agent has not got. */
function missingPart(first: Uint8Array, earlier: OpenExecution['handedOver']): Uint8Array {
  // The earlier process has also written later input, but not the end of its last line.
  if (earlier.bytes > first.length && earlier.isCut) return newline;
  return first.subarray(earlier.bytes);
}
