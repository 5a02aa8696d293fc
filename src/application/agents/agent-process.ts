import { plainText } from '../../domain/plain-text.ts';
import type { Reason } from '../../domain/reason.ts';
import type { AgentStreams } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OpenExecution, StreamOffsets } from '../../ports/sandbox-executions.ts';
import { waitAtMost } from '../timers.ts';
import type { MemoryShare } from './agent-memory-limit.ts';
import { AgentInput } from './agent-input.ts';
import { AgentOutput } from './agent-output.ts';
import { ErrorOutput, LastOutput } from './error-output.ts';
import type { SecretRedactor } from '../secrets.ts';

/** How long to wait for an agent's exit code after the end of its output, and then for the end of its standard error. */
const exitWithinMs = 5000;
const outputWithinMs = 2000;

const shownCharacters = 500;

/** The process of an agent: its streams, its end, and why it ended. */
export class AgentProcess {
  readonly input: AgentInput;
  readonly output: AgentOutput;
  readonly exited: Promise<void>;
  readonly memory: MemoryShare;
  readonly #execution: OpenExecution;
  readonly #errors: ErrorOutput;
  readonly #otherOutput = new LastOutput();
  readonly #redactor: SecretRedactor;
  readonly #clock: Clock;
  /** Set after the exit. The code is null if it is unknown or says nothing. */
  #exit: { readonly code: number | null } | null = null;
  /** One kill, because a second one could come after the start of the next agent, which has the same execution id. Null after a failure. */
  #killing: Promise<void> | null = null;

  /** `began` has the stream offsets of a turn that an earlier process began. If it is set, output is held back at first. */
  constructor(execution: OpenExecution, redactor: SecretRedactor, clock: Clock, memory: MemoryShare, began: StreamOffsets | null) {
    this.#execution = execution;
    this.#redactor = redactor;
    this.#clock = clock;
    this.memory = memory;
    this.input = new AgentInput(execution, began?.stdin ?? null);
    this.output = new AgentOutput(execution.stdout, memory, began?.stdout ?? null);
    this.#errors = new ErrorOutput(execution.stderr);
    this.exited = this.#noteExit();
    void this.exited.then(() => this.output.endAfterExit(clock));
  }

  get streams(): AgentStreams {
    return { stdin: this.input.stream, stdout: this.output.stream };
  }

  /** True if the agent continues when this process ends. */
  get durable(): boolean {
    return this.#execution.durable;
  }

  /** True if its output has ended, without a kill that succeeded. Then only the runtime knows whether it still runs. */
  async isEndUncertain(): Promise<boolean> {
    if (!this.durable || !this.output.hasEnded) return false;
    return this.#killing === null || (await this.#killing.then(() => false, () => true));
  }

  /** The position in its streams at which a turn begins. */
  get offsets(): StreamOffsets {
    return { stdin: this.input.offset, stdout: this.output.offset };
  }

  /** Keeps a line that is no message of the protocol. An agent may say there why it ends. */
  noteOtherOutput(line: string): void {
    this.#otherOutput.add(`${line}\n`);
  }

  forgetBefore(): void {
    this.#execution.forgetBefore(this.offsets).catch(() => {});
  }

  /** If the output or the process has ended, waits for the exit code and the standard error, but not longer than the timeouts. */
  async settled(): Promise<void> {
    if (!this.output.hasEnded && this.#exit === null) return;
    await waitAtMost(this.#clock, exitWithinMs, this.exited);
    await waitAtMost(this.#clock, outputWithinMs, this.#errors.ended);
  }

  async kill(): Promise<void> {
    this.output.abandon();
    this.#killing ??= this.#execution.kill().catch((error: unknown) => {
      this.#killing = null;
      throw error;
    });
    await this.#killing;
  }

  /** Detaches from an agent that continues without this process. */
  detach(): void {
    this.output.abandon();
    this.#execution.leave();
  }

  /** Ends a process that is not needed. Resolves when the standard error is known, or after a timeout. */
  async discard(): Promise<void> {
    await this.settled();
    await waitAtMost(this.#clock, outputWithinMs, Promise.allSettled([this.kill(), this.#errors.ended]));
  }

  /** Returns the cause with the exit code and the last output, without secrets. Without a cause and an exit code, the agent did not end. */
  reasonOf(cause: Reason | null): Reason | null {
    const clean = this.#redactor.redactJson(cause);
    const exitCode = this.#exit?.code ?? null;
    const output = this.#lastOutput();
    if (output === '' && exitCode === null) return clean;
    if (cause === null && exitCode === null) return { code: 'agent_running', output };
    return { code: 'agent_ended', cause: clean, exitCode, output };
  }

  /** Returns the ends of its output that is no message, and of its standard error, on one line, without secrets. */
  #lastOutput(): string {
    return [this.#otherOutput, this.#errors].map((output) => this.#shown(output)).filter((text) => text !== '').join(' ');
  }

  /** The two outputs are redacted apart: joined, one could split a secret of the other. */
  #shown({ text, isCut }: LastOutput): string {
    const redact = (from: string): string => (isCut ? this.#redactor.redactTail(from) : this.#redactor.redactText(from));
    // Colours can hide a secret, and a secret can contain what is removed with them.
    return redact(plainText(redact(text))).replaceAll(/\s+/gu, ' ').trim().slice(-shownCharacters).toWellFormed();
  }

  /** The exit code of a process that was killed or left says nothing. */
  async #noteExit(): Promise<void> {
    const code = await this.#execution.exited;
    this.#exit = { code: this.output.isAbandoned ? null : code };
  }
}
