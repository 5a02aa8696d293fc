import { plainText } from '../../domain/plain-text.ts';
import type { Reason } from '../../domain/reason.ts';
import type { AgentStreams } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OpenExecution, StreamOffsets } from '../../ports/sandbox-executions.ts';
import { waitAtMost } from '../timers.ts';
import type { MemoryShare } from './agent-memory-limit.ts';
import { ErrorOutput, LastOutput } from './agent-output.ts';
import type { SecretRedactor } from '../secrets.ts';

/** How long to wait for an agent's exit code after the end of its output, and then for the end of its standard error. */
const exitWithinMs = 5000;
const outputWithinMs = 2000;

const readWithinMs = 5000;

const shownCharacters = 500;

const newline = 0x0a;

export class AgentProcess {
  readonly streams: AgentStreams;
  readonly exited: Promise<void>;
  readonly memory: MemoryShare;
  readonly #execution: OpenExecution;
  readonly #errors: ErrorOutput;
  readonly #otherOutput = new LastOutput();
  readonly #redactor: SecretRedactor;
  readonly #clock: Clock;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #outputOver = Promise.withResolvers<void>();
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  /** Set while the output is held back. */
  #gate: PromiseWithResolvers<void> | null = null;
  #releasesAfterInput = false;
  /** Resolves when all output that was read is handled. */
  #outputHandled = Promise.withResolvers<void>();
  #offsets: StreamOffsets;
  #lineBytes = 0;
  /** How many bytes of the next input the agent already has. */
  #skip: number;
  #outputEnded = false;
  #isAbandoned = false;
  /** One kill, because a second one could come after the start of the next agent, which has the same execution id. */
  #killing: Promise<void> | null = null;
  #hasExited = false;
  #exitCode: number | null = null;

  /** `began` has the stream offsets of a turn that an earlier process began. If it is set, output is held back at first. */
  constructor(execution: OpenExecution, redactor: SecretRedactor, clock: Clock, memory: MemoryShare, began: StreamOffsets | null = null) {
    this.#execution = execution;
    this.#offsets = { stdin: execution.handedOver.bytes, stdout: began?.stdout ?? 0 };
    this.#skip = began === null ? 0 : execution.handedOver.bytes - began.stdin;
    if (began !== null) this.#gate = Promise.withResolvers();
    this.#input = execution.stdin.getWriter();
    this.#input.closed.catch(() => {});
    this.#redactor = redactor;
    this.#clock = clock;
    this.memory = memory;
    this.#errors = new ErrorOutput(execution.stderr);
    this.#reader = execution.stdout.getReader();
    // Nothing is read ahead. If nobody reads the output, the agent has to wait.
    const stdout = new ReadableStream<Uint8Array>(
      { pull: (controller) => this.#read(controller), cancel: (reason) => this.#abandon(reason) },
      { highWaterMark: 0 },
    );
    const stdin = new WritableStream<Uint8Array>({
      write: (chunk) => this.#write(chunk),
      close: () => this.#input.close(),
      abort: (reason) => this.#input.abort(reason),
    });
    this.streams = { stdin, stdout };
    this.exited = this.#exit();
    void this.exited.then(() => this.#endOutput());
  }

  /** True if the agent continues when this process ends. */
  get durable(): boolean {
    return this.#execution.durable;
  }

  /** True if its output has ended, without a kill that succeeded. Then only the runtime knows whether it still runs. */
  async isEndUncertain(): Promise<boolean> {
    if (!this.durable || !this.#outputEnded) return false;
    return this.#killing === null || (await this.#killing.then(() => false, () => true));
  }

  /** The number of bytes that the agent has read and written in complete lines. */
  get offsets(): StreamOffsets {
    return { ...this.#offsets, stdout: this.#offsets.stdout - this.#lineBytes };
  }

  /** Sets how many bytes at the end of the output are an incomplete line. */
  noteLine(bytes: number): void {
    this.#lineBytes = bytes;
    this.memory.setOutput('line', bytes);
  }

  /** Keeps a line that is no message of the protocol. An agent may say there why it ends. */
  noteOtherOutput(line: string): void {
    this.#otherOutput.add(`${line}\n`);
  }

  /** Holds back all further output. Resolves when the earlier output is handled. */
  async holdOutput(): Promise<void> {
    this.#gate ??= Promise.withResolvers();
    await Promise.race([this.#outputHandled.promise, this.#outputOver.promise]);
  }

  releaseOutput(): void {
    this.#releasesAfterInput = false;
    this.#gate?.resolve();
    this.#gate = null;
  }

  /** Continues without the message that began the turn. If an earlier process has written an incomplete line, ends that line. */
  async skipNoInput(): Promise<void> {
    const isCut = this.#skip > 0 && this.#execution.handedOver.isCut;
    this.#skip = 0;
    if (isCut) await this.#write(Uint8Array.of(newline));
  }

  releaseOutputAfterInput(): void {
    this.#releasesAfterInput = true;
  }

  forgetBefore(): void {
    this.#execution.forgetBefore(this.offsets).catch(() => {});
  }

  /** If the output or the process has ended, waits for the exit code and the standard error, but not longer than the timeouts. */
  async settled(): Promise<void> {
    if (!this.#outputEnded && !this.#hasExited) return;
    await waitAtMost(this.#clock, exitWithinMs, this.exited);
    await waitAtMost(this.#clock, outputWithinMs, this.#errors.ended);
  }

  async kill(): Promise<void> {
    this.#isAbandoned = true;
    this.memory.close();
    this.releaseOutput();
    this.#killing ??= this.#execution.kill().catch((error: unknown) => {
      this.#killing = null;
      throw error;
    });
    await this.#killing;
  }

  /** Detaches from an agent that continues without this process. */
  detach(): void {
    this.#isAbandoned = true;
    this.releaseOutput();
    this.#execution.leave();
  }

  /** Ends a process that is not needed. Resolves when the standard error is known, or after a timeout. */
  async discard(): Promise<void> {
    await this.settled();
    await waitAtMost(this.#clock, outputWithinMs, Promise.allSettled([this.kill(), this.#errors.ended]));
  }

  /** Returns the cause with the exit code and the last output, without secrets. Without a cause and an exit code, the agent did not end. */
  reasonOf(cause: Reason | null): Reason | null {
    const clean = this.#redactor.data(cause);
    const { output } = this;
    if (output === '' && this.#exitCode === null) return clean;
    if (cause === null && this.#exitCode === null) return { code: 'agent_running', output };
    return { code: 'agent_ended', cause: clean, exitCode: this.#exitCode, output };
  }

  /** The ends of its output that is no message, and of its standard error, on one line, without secrets. */
  get output(): string {
    return [this.#otherOutput, this.#errors].map((output) => this.#shown(output)).filter((text) => text !== '').join(' ');
  }

  /** The two outputs are redacted apart: joined, one could split a secret of the other. */
  #shown({ text, isCut }: LastOutput): string {
    const redact = (from: string): string => (isCut ? this.#redactor.tail(from) : this.#redactor.text(from));
    // Colours can hide a secret, and a secret can contain what is removed with them.
    return redact(plainText(redact(text))).replaceAll(/\s+/gu, ' ').trim().slice(-shownCharacters).toWellFormed();
  }

  async #read(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    // A new read means that the previous chunk is handled.
    this.memory.setOutput('chunk', 0);
    this.#outputHandled.resolve();
    try {
      const { value } = await this.#reader.read();
      while (this.#gate !== null) await this.#gate.promise;
      if (value !== undefined) {
        await this.memory.waitForRoom(value.length);
        this.memory.setOutput('chunk', value.length);
        this.#outputHandled = Promise.withResolvers();
        this.#offsets = { ...this.#offsets, stdout: this.#offsets.stdout + value.length };
        return controller.enqueue(value);
      }
      this.#noteEnd();
      controller.close();
    } catch (error) {
      this.#noteEnd();
      throw error;
    }
  }

  /** Skips the bytes that the agent already got from an earlier process. */
  async #write(chunk: Uint8Array): Promise<void> {
    const rest = chunk.subarray(Math.min(this.#skip, chunk.length));
    // An incomplete line of the earlier process gets its newline.
    const isCut = this.#skip > chunk.length && this.#execution.handedOver.isCut;
    this.#skip = 0;
    if (this.#releasesAfterInput) this.releaseOutput();
    const bytes = isCut ? Uint8Array.of(newline) : rest;
    this.#offsets = { ...this.#offsets, stdin: this.#offsets.stdin + bytes.length };
    if (bytes.length > 0) await this.#input.write(bytes);
  }

  #noteEnd(): void {
    this.memory.close();
    this.#outputEnded = true;
    this.#outputOver.resolve();
  }

  async #abandon(reason: unknown): Promise<void> {
    this.#isAbandoned = true;
    this.memory.close();
    this.#outputOver.resolve();
    await this.#reader.cancel(reason);
  }

  /** Ends the output after the exit. A child process of the agent may keep it open, so a reader would wait for ever. */
  async #endOutput(): Promise<void> {
    // Waits while the output is held back, so that nothing is lost.
    do await waitAtMost(this.#clock, readWithinMs, this.#outputOver.promise);
    while (!this.#outputEnded && !this.#isAbandoned && (this.memory.isHeldBack || this.#gate !== null));
    await this.#reader.cancel().catch(() => {});
  }

  /** The exit code of a process that was killed says nothing and is dropped. */
  async #exit(): Promise<void> {
    const code = await this.#execution.exited;
    this.#hasExited = true;
    if (!this.#isAbandoned) this.#exitCode = code;
  }
}
