import type { Message } from '../../domain/conversation.ts';
import { type AgentClient, AgentRefusal, type AgentSession, type AgentTurn } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import { waitAtMost } from '../timers.ts';
import type { AgentProcess } from './agent-process.ts';
import type { RedactingAgentClient } from './redacting-agent-client.ts';
import type { SecretRedactor } from './secret-redactor.ts';

interface LiveAgentDeps {
  readonly session: AgentSession;
  readonly process: AgentProcess;
  readonly client: RedactingAgentClient;
  readonly scrubber: SecretRedactor;
  readonly clock: Clock;
}

/** How long the end of an agent's process is waited for. */
const endWithinMs = 5000;

/** An agent that runs in a sandbox, with its session. What it says is free of the deployment's secrets. */
export class LiveAgent {
  /** Settles when it has ended, with why in words. */
  readonly ended: Promise<string>;
  readonly #deps: LiveAgentDeps;
  #alive = true;
  #isOutlived = false;

  constructor(deps: LiveAgentDeps) {
    this.#deps = deps;
    this.ended = this.#end();
  }

  get sessionId(): string {
    return this.#deps.session.id;
  }

  /** Can it still be talked with? */
  get alive(): boolean {
    return this.#alive;
  }

  /** Did it find the session again that it was asked for? */
  get loaded(): boolean {
    return this.#deps.session.loaded;
  }

  /** Hands the message over and answers when the turn has ended. Never rejects but with what the client fails with. */
  async prompt(message: Message, client: AgentClient): Promise<AgentTurn> {
    const { session, scrubber } = this.#deps;
    const turn = await this.#deps.client.during(client, () => session.prompt(message));
    const { stopReason, detail } = turn;
    if (stopReason !== 'interrupted') return { ...turn, detail: detail === null ? null : scrubber.text(detail) };
    return { ...turn, detail: await this.#account(detail ?? 'its agent ended') };
  }

  cancel(): Promise<void> {
    return this.#deps.session.cancel();
  }

  /** Ends the connection and the process. Answers when they have ended, or after a while. Idempotent. */
  async kill(): Promise<void> {
    const { session, process, clock } = this.#deps;
    this.#alive = false;
    await waitAtMost(clock, endWithinMs, Promise.allSettled([session.close(), process.kill()]));
  }

  async #end(): Promise<string> {
    void this.#exited();
    const reason = await this.#deps.session.closed;
    this.#alive = false;
    const account = await this.#account(reason);
    await this.kill();
    return account;
  }

  async #account(reason: string): Promise<string> {
    const { process } = this.#deps;
    await process.settled();
    return process.account(this.#isOutlived ? 'the agent has ended' : reason);
  }

  /** What it said before it ended is still to be read; but it may leave its streams open in a process that it started. */
  async #exited(): Promise<void> {
    const { session, process, clock } = this.#deps;
    await process.exited;
    this.#isOutlived = (await waitAtMost(clock, endWithinMs, session.closed)) === null;
    await session.close().catch(() => {});
  }
}

/** How long what an agent wrote before it ended may take to be read. */
const readWithinMs = 2000;

/**
 * Does the work under a signal that fires, besides, a while after the agent's process has ended: it may leave its streams open
 * in a process that it started, so that nobody who only reads them learns of its end. Rejects with an {@link AgentRefusal} then.
 */
export async function whileItRuns<T>(process: AgentProcess, clock: Clock, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const gone = new AbortController();
  const working = work(AbortSignal.any([signal, gone.signal]));
  void outlived(process, clock, working).then((isOutlived) => isOutlived && gone.abort());
  try {
    return await working;
  } catch (error) {
    if (gone.signal.aborted && !(error instanceof AgentRefusal)) throw new AgentRefusal('no session came about: the agent has ended', { cause: error });
    throw error;
  }
}

/** Does the work go on though the process has ended? Never answers where the process goes on. */
async function outlived(process: AgentProcess, clock: Clock, working: Promise<unknown>): Promise<boolean> {
  const over = Promise.allSettled([working]);
  await process.exited;
  return (await waitAtMost(clock, readWithinMs, over)) === null;
}
