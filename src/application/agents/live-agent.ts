import type { Message } from '../../domain/conversation.ts';
import type { AgentClient, AgentSession, AgentTurn } from '../../ports/agent.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Execution } from '../../ports/sandbox-runtime.ts';
import { within } from '../within.ts';
import type { CleanClient } from './clean-client.ts';
import type { OutputTail } from './output-tail.ts';
import type { Scrubber } from './scrub.ts';

export interface LiveAgentParts {
  readonly session: AgentSession;
  readonly execution: Execution;
  readonly client: CleanClient;
  readonly errors: OutputTail;
  readonly scrubber: Scrubber;
  readonly clock: Clock;
}

/** How long the end of an agent's process is waited for. */
const endWithinMs = 5000;

/** An agent that runs in a sandbox, with its session. What it says is free of the deployment's secrets. */
export class LiveAgent {
  /** Settles when it has ended, with why in words. */
  readonly ended: Promise<string>;
  readonly #parts: LiveAgentParts;
  #exitCode: number | null = null;
  #alive = true;

  constructor(parts: LiveAgentParts) {
    this.#parts = parts;
    this.ended = this.#end();
  }

  get sessionId(): string {
    return this.#parts.session.id;
  }

  /** Can it still be talked with? */
  get alive(): boolean {
    return this.#alive;
  }

  /** Did it find the session again that it was asked for? */
  get loaded(): boolean {
    return this.#parts.session.loaded;
  }

  /** Hands the message over and answers when the turn has ended. Never rejects but with what the client fails with. */
  async prompt(message: Message, client: AgentClient): Promise<AgentTurn> {
    const turn = await this.#parts.client.during(client, () => this.#parts.session.prompt(message));
    if (turn.stopReason !== 'interrupted') return { ...turn, detail: this.#clean(turn.detail) };
    return { ...turn, detail: this.#clean(this.#withOutput(turn.detail ?? 'its agent ended')) };
  }

  cancel(): Promise<void> {
    return this.#parts.session.cancel();
  }

  /** Ends the connection and the process. Answers when they have ended, or after a while. Idempotent. */
  async kill(): Promise<void> {
    const { session, execution, clock } = this.#parts;
    this.#alive = false;
    await within(clock, endWithinMs, Promise.allSettled([session.close(), execution.kill()]));
  }

  async #end(): Promise<string> {
    void this.#exited();
    const reason = await this.#parts.session.closed;
    this.#alive = false;
    await this.kill();
    return this.#clean(this.#withOutput(reason)) ?? '';
  }

  /** What it said before it ended is still to be read; but it may leave its streams open in a process that it started. */
  async #exited(): Promise<void> {
    const { session, execution, clock } = this.#parts;
    this.#exitCode = await execution.exited;
    await within(clock, endWithinMs, session.closed);
    await session.close().catch(() => {});
  }

  #withOutput(reason: string): string {
    const code = this.#exitCode === null ? '' : ` (exit code ${this.#exitCode})`;
    const { text } = this.#parts.errors;
    return `${reason}${code}${text === '' ? '' : `; its last words: ${text.slice(-500)}`}`;
  }

  #clean(text: string | null): string | null {
    return text === null ? null : this.#parts.scrubber.text(text);
  }
}
