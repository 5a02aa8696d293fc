import type { AgentStreams } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Execution } from '../../ports/sandbox-runtime.ts';
import { within } from '../timers.ts';
import { OutputTail } from './output-tail.ts';
import type { Scrubber } from './scrub.ts';
import { watched } from './watched.ts';

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
  readonly #scrubber: Scrubber;
  readonly #clock: Clock;
  #outputEnded = false;
  #isLeft = false;
  #hasExited = false;
  #exitCode: number | null = null;

  constructor(execution: Execution, scrubber: Scrubber, clock: Clock) {
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
    await within(this.#clock, exitWithinMs, this.exited);
    await within(this.#clock, wordsWithinMs, this.#errors.ended);
  }

  /** Ends it. */
  async kill(): Promise<void> {
    this.#isLeft = true;
    await this.#execution.kill();
  }

  /** Ends what is left of one that is not wanted. What it said last is known when this answers, after a while at most. */
  async leave(): Promise<void> {
    await this.settled();
    await within(this.#clock, wordsWithinMs, Promise.allSettled([this.kill(), this.#errors.ended]));
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
