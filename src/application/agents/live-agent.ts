import type { Message, TurnPosition } from '../../domain/conversation.ts';
import type { Reason } from '../../domain/reason.ts';
import type { AgentClient, AgentSession, AgentTurn } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import { waitAtMost } from '../timers.ts';
import type { MemoryShare } from './agent-memory.ts';
import type { AgentProcess } from './agent-process.ts';
import type { RedactingAgentClient } from './redacting-agent-client.ts';
import type { SecretRedactor } from '../secret-redactor.ts';

interface LiveAgentDeps {
  readonly session: AgentSession;
  readonly process: AgentProcess;
  readonly client: RedactingAgentClient;
  readonly redactor: SecretRedactor;
  readonly memory: MemoryShare;
  readonly clock: Clock;
}

const endWithinMs = 5000;

/** The time from the end of a turn until the agent's output is forgotten. Earlier, that would delay the next message. */
const forgetAfterMs = 1000;

/** An agent in a sandbox, with its session. The deployment's secrets are redacted in its output. */
export class LiveAgent {
  /** Resolves with the reason when it has ended. */
  readonly ended: Promise<Reason | null>;
  readonly #deps: LiveAgentDeps;
  #alive = true;
  #isDetached = false;
  #cancelForget = (): void => {};

  constructor(deps: LiveAgentDeps) {
    this.#deps = deps;
    this.ended = this.#end();
  }

  get sessionId(): string {
    return this.#deps.session.id;
  }

  get memory(): MemoryShare {
    return this.#deps.memory;
  }

  /** True until its connection or its process ends. */
  get alive(): boolean {
    return this.#alive;
  }

  /** True if it continues the requested session. */
  get loaded(): boolean {
    return this.#deps.session.loaded;
  }

  /** True if the agent continues when this process ends. */
  get durable(): boolean {
    return this.#deps.process.durable;
  }

  /**
   * Holds back the agent's output until it gets the next message or {@link releaseOutput} is called. Returns the state from which another
   * process can continue the turn. Null if the agent is not durable.
   */
  async holdOutput(): Promise<Omit<TurnPosition, 'from' | 'context'> | null> {
    const { process, session } = this.#deps;
    if (!process.durable) return null;
    this.#cancelForget();
    await process.holdOutput();
    const requestId = await session.nextRequest();
    return { sessionId: session.id, requestId, ...process.offsets };
  }

  releaseOutput(): void {
    this.#deps.process.releaseOutput();
  }

  /** Sends the message and resolves when the turn has ended. Rejects only if the client does. */
  async prompt(message: Message, client: AgentClient): Promise<AgentTurn> {
    const { session, redactor, process } = this.#deps;
    process.releaseOutputAfterInput();
    const turn = await this.#deps.client.withListener(client, () => session.prompt(message));
    const { stopReason, reason } = turn;
    if (stopReason !== 'interrupted') return { ...turn, reason: redactor.data(reason) };
    return { ...turn, reason: await this.#reasonOf(reason ?? { code: 'agent_exited' }) };
  }

  cancel(): Promise<void> {
    return this.#deps.session.cancel();
  }

  /** Detaches from a durable agent, which continues to work. Here its turn ends as interrupted. */
  async detach(): Promise<void> {
    this.#isDetached = true;
    this.#alive = false;
    this.#cancelForget();
    await this.#deps.session.close();
    this.#deps.process.detach();
  }

  /** Forgets the agent's output after a short time, unless the agent gets another message before. */
  forgetOutputSoon(): void {
    const { process, clock } = this.#deps;
    if (process.durable && this.#alive) this.#cancelForget = clock.after(forgetAfterMs, () => process.forgetBefore());
  }

  /**
   * Ends the connection and the process, unless {@link detach} was called. Resolves when both have ended, or after a timeout. Idempotent.
   */
  async kill(): Promise<void> {
    const { session, process, clock } = this.#deps;
    if (this.#isDetached) return;
    this.#alive = false;
    this.#cancelForget();
    await waitAtMost(clock, endWithinMs, Promise.allSettled([session.close(), process.kill()]));
  }

  async #end(): Promise<Reason | null> {
    const cause = await this.#deps.session.closed;
    this.#alive = false;
    const reason = await this.#reasonOf(cause);
    await this.kill();
    return reason;
  }

  async #reasonOf(cause: Reason): Promise<Reason | null> {
    const { process } = this.#deps;
    await process.settled();
    return process.reasonOf(cause);
  }
}
