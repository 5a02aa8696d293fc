import type { Reason } from '../../domain/reason.ts';
import type { AgentStreams } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Execution } from '../../ports/sandbox-runtime.ts';
import { waitAtMost } from '../timers.ts';
import type { MemoryShare } from './agent-memory.ts';
import type { SecretRedactor } from './secret-redactor.ts';

/** How long to wait for an agent's exit code after the end of its output, and then for the end of its standard error. */
const exitWithinMs = 5000;
const outputWithinMs = 2000;

const readWithinMs = 5000;

const shownCharacters = 500;

export class AgentProcess {
  readonly streams: AgentStreams;
  readonly exited: Promise<void>;
  readonly #execution: Execution;
  readonly #errors: OutputTail;
  readonly #redactor: SecretRedactor;
  readonly #clock: Clock;
  readonly #memory: MemoryShare;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #outputOver = Promise.withResolvers<void>();
  #outputEnded = false;
  #isAbandoned = false;
  #hasExited = false;
  #exitCode: number | null = null;

  constructor(execution: Execution, redactor: SecretRedactor, clock: Clock, memory: MemoryShare) {
    this.#execution = execution;
    this.#redactor = redactor;
    this.#clock = clock;
    this.#memory = memory;
    this.#errors = new OutputTail(execution.stderr);
    this.#reader = execution.stdout.getReader();
    // Nothing is read ahead, so an agent that nobody reads is held back.
    const stdout = new ReadableStream<Uint8Array>(
      { pull: (controller) => this.#read(controller), cancel: (reason) => this.#abandon(reason) },
      { highWaterMark: 0 },
    );
    this.streams = { stdin: execution.stdin, stdout };
    this.exited = this.#exit();
    void this.exited.then(() => this.#endOutput());
  }

  /** Resolves when the exit code and the standard error are known, or after a while: the end of its output comes earlier. */
  async settled(): Promise<void> {
    if (!this.#outputEnded && !this.#hasExited) return;
    await waitAtMost(this.#clock, exitWithinMs, this.exited);
    await waitAtMost(this.#clock, outputWithinMs, this.#errors.ended);
  }

  async kill(): Promise<void> {
    this.#isAbandoned = true;
    this.#memory.close();
    await this.#execution.kill();
  }

  /** Ends a process that is not needed. Its standard error is known when this resolves, after a while at most. */
  async discard(): Promise<void> {
    await this.settled();
    await waitAtMost(this.#clock, outputWithinMs, Promise.allSettled([this.kill(), this.#errors.ended]));
  }

  /** Returns the cause together with the exit code and the end of the standard error, without secrets. */
  reasonOf(cause: Reason | null): Reason | null {
    const clean = this.#redactor.data(cause);
    const { output } = this;
    if (output === '' && this.#exitCode === null) return clean;
    return { code: 'agent_ended', cause: clean, exitCode: this.#exitCode, output };
  }

  /** The end of its standard error on one line, without secrets. */
  get output(): string {
    const { text, isCut } = this.#errors;
    const clean = isCut ? this.#redactor.tail(text) : this.#redactor.text(text);
    return clean.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim().slice(-shownCharacters).toWellFormed();
  }

  async #read(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    // Whoever reads on has handled what was read before.
    this.#memory.setOutput('chunk', 0);
    try {
      const { value } = await this.#reader.read();
      if (value !== undefined) {
        await this.#memory.room(value.length);
        this.#memory.setOutput('chunk', value.length);
        return controller.enqueue(value);
      }
      this.#noteEnd();
      controller.close();
    } catch (error) {
      this.#noteEnd();
      throw error;
    }
  }

  #noteEnd(): void {
    this.#memory.close();
    this.#outputEnded = true;
    this.#outputOver.resolve();
  }

  async #abandon(reason: unknown): Promise<void> {
    this.#isAbandoned = true;
    this.#memory.close();
    this.#outputOver.resolve();
    await this.#reader.cancel(reason);
  }

  /** An agent may leave its output open in a process that it started. Whoever only reads it would wait for ever. */
  async #endOutput(): Promise<void> {
    // Nothing is lost of what could not be read yet.
    do await waitAtMost(this.#clock, readWithinMs, this.#outputOver.promise);
    while (this.#memory.isHeldBack);
    await this.#reader.cancel().catch(() => {});
  }

  /** The exit code of a process that was killed says nothing and is dropped. */
  async #exit(): Promise<void> {
    const code = await this.#execution.exited;
    this.#hasExited = true;
    if (!this.#isAbandoned) this.#exitCode = code;
  }
}

const keptCharacters = 4096;

/** Reads a stream to its end, so that its writer never blocks, and keeps the last characters. */
class OutputTail {
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
      // The connection failed. What was kept is all there is.
    }
  }
}
