import type { Message } from '../../domain/conversation.ts';
import type { Reason } from '../../domain/reason.ts';
import { type AgentClient, AgentRefusal, type AgentSession, type AgentTurn } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import { waitAtMost } from '../timers.ts';
import type { AgentProcess } from './agent-process.ts';
import type { RedactingAgentClient, SecretRedactor } from './secret-redactor.ts';

interface LiveAgentDeps {
  readonly session: AgentSession;
  readonly process: AgentProcess;
  readonly client: RedactingAgentClient;
  readonly redactor: SecretRedactor;
  readonly clock: Clock;
}

/** How long to wait for the end of an agent's process. */
const endWithinMs = 5000;

/** An agent that runs in a sandbox, with its session. What it says holds none of the deployment's secrets. */
export class LiveAgent {
  /** Resolves with the reason when it has ended. */
  readonly ended: Promise<Reason | null>;
  readonly #deps: LiveAgentDeps;
  #alive = true;
  #hasExited = false;

  constructor(deps: LiveAgentDeps) {
    this.#deps = deps;
    this.ended = this.#end();
  }

  get sessionId(): string {
    return this.#deps.session.id;
  }

  /** True until its connection or its process ends. */
  get alive(): boolean {
    return this.#alive;
  }

  /** True if it continues the requested session. */
  get loaded(): boolean {
    return this.#deps.session.loaded;
  }

  /** Sends the message and resolves when the turn has ended. Rejects only if the client does. */
  async prompt(message: Message, client: AgentClient): Promise<AgentTurn> {
    const { session, redactor } = this.#deps;
    const turn = await this.#deps.client.during(client, () => session.prompt(message));
    const { stopReason, reason } = turn;
    if (stopReason !== 'interrupted') return { ...turn, reason: redactor.data(reason) };
    return { ...turn, reason: await this.#reasonOf(reason ?? { code: 'agent_exited' }) };
  }

  cancel(): Promise<void> {
    return this.#deps.session.cancel();
  }

  /** Ends the connection and the process. Resolves when they have ended, or after a while. Idempotent. */
  async kill(): Promise<void> {
    const { session, process, clock } = this.#deps;
    this.#alive = false;
    await waitAtMost(clock, endWithinMs, Promise.allSettled([session.close(), process.kill()]));
  }

  async #end(): Promise<Reason | null> {
    void this.#closeAfterExit();
    const cause = await this.#deps.session.closed;
    this.#alive = false;
    const reason = await this.#reasonOf(cause);
    await this.kill();
    return reason;
  }

  async #reasonOf(cause: Reason): Promise<Reason | null> {
    const { process } = this.#deps;
    await process.settled();
    return process.reasonOf(this.#hasExited ? { code: 'agent_exited' } : cause);
  }

  /** What it wrote before it ended is still read. But it may leave its streams open in a process that it started. */
  async #closeAfterExit(): Promise<void> {
    const { session, process, clock } = this.#deps;
    await process.exited;
    this.#hasExited = (await waitAtMost(clock, endWithinMs, session.closed)) === null;
    await session.close().catch(() => {});
  }
}

/** How long to read what an agent wrote before it ended. */
const readWithinMs = 2000;

/**
 * Does the work under a signal that also fires a while after the agent's process has ended: the agent may leave its streams
 * open in a process that it started, and whoever only reads them waits for ever. Rejects with an {@link AgentRefusal} then.
 */
export async function whileItRuns<T>(
  process: AgentProcess,
  clock: Clock,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const exited = new AbortController();
  const working = work(AbortSignal.any([signal, exited.signal]));
  void continuesAfterExit(process, clock, working).then((continues) => continues && exited.abort());
  try {
    return await working;
  } catch (error) {
    if (exited.signal.aborted && !(error instanceof AgentRefusal)) throw new AgentRefusal({ code: 'agent_exited' }, { cause: error });
    throw error;
  }
}

/** Resolves to true if the work still runs a while after the process has ended. Never resolves while the process runs. */
async function continuesAfterExit(process: AgentProcess, clock: Clock, working: Promise<unknown>): Promise<boolean> {
  const over = Promise.allSettled([working]);
  await process.exited;
  return (await waitAtMost(clock, readWithinMs, over)) === null;
}
