import type { AgentStreams } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Execution } from '../../ports/sandbox-runtime.ts';
import { waitAtMost } from '../timers.ts';
import type { SecretRedactor } from './secret-redactor.ts';

/** How long the exit code of an agent is waited for after the end of its output, and the end of its last words after that. */
const exitWithinMs = 5000;
const wordsWithinMs = 2000;

/** How much of them is told. */
const toldCharacters = 500;

/** The process of an agent, and what is known of its end. */
export class AgentProcess {
  readonly streams: AgentStreams;
  /** Settles when it has ended. */
  readonly exited: Promise<void>;
  readonly #execution: Execution;
  readonly #errors: OutputTail;
  readonly #scrubber: SecretRedactor;
  readonly #clock: Clock;
  #outputEnded = false;
  #isLeft = false;
  #hasExited = false;
  #exitCode: number | null = null;

  constructor(execution: Execution, scrubber: SecretRedactor, clock: Clock) {
    const watcher = { ended: () => void (this.#outputEnded = true), left: () => void (this.#isLeft = true) };
    this.#execution = execution;
    this.#scrubber = scrubber;
    this.#clock = clock;
    this.#errors = new OutputTail(execution.stderr);
    this.streams = { stdin: execution.stdin, stdout: watched(execution.stdout, watcher) };
    this.exited = this.#exit();
  }

  /**
   * Where it ended by itself: answers when the exit code and the last words are known, or after a while. The end of its
   * output comes before they do.
   */
  async settled(): Promise<void> {
    if (!this.#outputEnded && !this.#hasExited) return;
    await waitAtMost(this.#clock, exitWithinMs, this.exited);
    await waitAtMost(this.#clock, wordsWithinMs, this.#errors.ended);
  }

  /** Ends it. */
  async kill(): Promise<void> {
    this.#isLeft = true;
    await this.#execution.kill();
  }

  /** Ends what is left of one that is not wanted. What it said last is known when this answers, after a while at most. */
  async leave(): Promise<void> {
    await this.settled();
    await waitAtMost(this.#clock, wordsWithinMs, Promise.allSettled([this.kill(), this.#errors.ended]));
  }

  /** The reason for its end with what is known of it, without secrets. */
  account(reason: string): string {
    const code = this.#exitCode === null ? '' : ` (exit code ${this.#exitCode})`;
    const words = this.lastWords;
    return `${this.#scrubber.text(reason)}${code}${words === '' ? '' : `; its last words: ${words}`}`;
  }

  /** The end of its standard error on one line, without secrets. */
  get lastWords(): string {
    const { text, isCut } = this.#errors;
    const clean = isCut ? this.#scrubber.rest(text) : this.#scrubber.text(text);
    return clean.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim().slice(-toldCharacters).toWellFormed();
  }

  /** The code of one that ended because it was left, or killed, tells nothing. */
  async #exit(): Promise<void> {
    const code = await this.#execution.exited;
    this.#hasExited = true;
    if (!this.#isLeft) this.#exitCode = code;
  }
}

const keptBytes = 4096;

/** Reads a stream to its end, so that its writer is never held back, and keeps the end of it. */
class OutputTail {
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

interface OutputWatcher {
  /** The stream has ended, or broken off, while it was still read. */
  readonly ended: () => void;
  /** Its reader wants no more of it. */
  readonly left: () => void;
}

/** The stream, and whoever watches it is told how it ends before its reader is. Nothing is read ahead. */
function watched(stream: ReadableStream<Uint8Array>, { ended, left }: OutputWatcher): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  const next = async (): Promise<Uint8Array | undefined> => {
    try {
      const { value } = await reader.read();
      if (value === undefined) ended();
      return value;
    } catch (error) {
      ended();
      throw error;
    }
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const chunk = await next();
        if (chunk === undefined) controller.close();
        else controller.enqueue(chunk);
      },
      async cancel(reason) {
        left();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
