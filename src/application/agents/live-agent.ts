import type { Message } from '../../domain/conversation.ts';
import type { AgentClient, AgentSession, AgentTurn } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import { within } from '../timers.ts';
import type { AgentProcess } from './agent-process.ts';
import type { CleanClient } from './clean-client.ts';
import type { Scrubber } from './scrub.ts';

export interface LiveAgentParts {
  readonly session: AgentSession;
  readonly process: AgentProcess;
  readonly client: CleanClient;
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
  #alive = true;
  #isOutlived = false;

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
    const { session, scrubber } = this.#parts;
    const turn = await this.#parts.client.during(client, () => session.prompt(message));
    const { stopReason, detail } = turn;
    if (stopReason !== 'interrupted') return { ...turn, detail: detail === null ? null : scrubber.text(detail) };
    return { ...turn, detail: await this.#account(detail ?? 'its agent ended') };
  }

  cancel(): Promise<void> {
    return this.#parts.session.cancel();
  }

  /** Ends the connection and the process. Answers when they have ended, or after a while. Idempotent. */
  async kill(): Promise<void> {
    const { session, process, clock } = this.#parts;
    this.#alive = false;
    await within(clock, endWithinMs, Promise.allSettled([session.close(), process.kill()]));
  }

  async #end(): Promise<string> {
    void this.#exited();
    const reason = await this.#parts.session.closed;
    this.#alive = false;
    const account = await this.#account(reason);
    await this.kill();
    return account;
  }

  async #account(reason: string): Promise<string> {
    const { process } = this.#parts;
    await process.settled();
    return process.account(this.#isOutlived ? 'the agent has ended' : reason);
  }

  /** What it said before it ended is still to be read; but it may leave its streams open in a process that it started. */
  async #exited(): Promise<void> {
    const { session, process, clock } = this.#parts;
    await process.exited;
    this.#isOutlived = (await within(clock, endWithinMs, session.closed)) === null;
    await session.close().catch(() => {});
  }
}
