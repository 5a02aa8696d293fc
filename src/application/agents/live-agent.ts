import type { Message, TurnPosition } from '../../domain/conversation.ts';
import type { Reason } from '../../domain/reason.ts';
import type { AgentSession, AgentTurn } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SecretRedactor } from '../secrets.ts';
import { waitAtMost } from '../timers.ts';
import type { AgentProcess } from './agent-process.ts';
import type { RedactingAgentClient, TurnClient } from './redacting-agent-client.ts';

interface LiveAgentDeps extends Pick<LiveAgent, 'session' | 'process'> {
  readonly client: RedactingAgentClient;
  readonly redactor: SecretRedactor;
  readonly clock: Clock;
  /** Returns whether its command runs, or may run because its runtime does not answer. */
  readonly mayRun: () => Promise<boolean>;
}

const endWithinMs = 5000;

/** The time from the end of a turn until the agent's output is forgotten. Earlier, that would delay the next message. */
const forgetAfterMs = 1000;

/**
 * An agent in a sandbox, with its session. The deployment's secrets are redacted in its output. Who has its next output:
 *
 * | the agent is | since                                      | its next output                                                   |
 * |--------------|--------------------------------------------|-------------------------------------------------------------------|
 * | idle         | it was opened, or its turn ended           | is read by the session, which drops all that is no work           |
 * | unprompted   | it began to work without a message         | waits in the session for the next turn                            |
 * | held         | `holdOutput`, or it was taken over         | waits in `AgentOutput`, until the message is sent, or `follow`    |
 * | in a turn    | its message was sent, or `follow`          | goes to the turn's client                                         |
 * | closed       | it has ended, was killed or detached       | is not read; after `detach`, the next process reads it            |
 *
 * While the turn for unprompted work is being written, the agent is unprompted and held. An agent that is not durable is never held.
 */
export class LiveAgent {
  /** Resolves with the reason when it has ended. */
  readonly ended: Promise<Reason | null>;
  readonly session: AgentSession;
  readonly process: AgentProcess;
  readonly #deps: LiveAgentDeps;
  #state: 'alive' | 'ended' | 'detached' = 'alive';
  #mayRun: Promise<boolean> | null = null;
  #cancelForget = (): void => {};

  constructor(deps: LiveAgentDeps) {
    this.#deps = deps;
    this.session = deps.session;
    this.process = deps.process;
    this.ended = this.#end();
  }

  /** True until its connection or its process ends. */
  get alive(): boolean {
    return this.#state === 'alive';
  }

  /** True if the agent has begun to work without a message, and its output waits for the next turn. */
  get hasUnpromptedWork(): boolean {
    return this.#deps.client.hasUnpromptedWork;
  }

  /** Returns true if only the connection to the agent was lost, for example by a restart of the engine. Then it can be taken over. */
  async isCutOff(): Promise<boolean> {
    if (!(await this.process.isEndUncertain())) return false;
    return await (this.#mayRun ??= this.#deps.mayRun());
  }

  /**
   * Holds back the agent's output until it gets the next message, or `releaseOutput` is called. Returns the state from which another
   * process can continue the turn. Null if the agent is not durable.
   */
  async holdOutput(): Promise<Omit<TurnPosition, 'from' | 'context'> | null> {
    if (!this.process.durable) return null;
    this.#cancelForget();
    // Output that waits for the turn is not handled before it begins.
    await Promise.race([this.process.output.hold(), this.#deps.client.unpromptedWork]);
    const requestId = await this.session.nextRequest();
    return { sessionId: this.session.id, requestId, ...this.process.offsets };
  }

  releaseOutput(): void {
    this.process.output.release();
  }

  /** Sends the message and resolves when the turn has ended. Rejects only if the client does. */
  async prompt(message: Message, client: TurnClient): Promise<AgentTurn> {
    // The output of a turn that is taken over contains the agent's answer to the message, which must not come before the message.
    void this.process.input.nextWrite.then(() => this.releaseOutput());
    return await this.#listen(client, () => this.session.prompt(message));
  }

  /** Takes the work that the agent does without a message, until the signal fires. Rejects only if the client does. */
  async follow(over: AbortSignal, client: TurnClient): Promise<AgentTurn> {
    // Not awaited, so a cancel that comes next is part of the turn. A failed write shows at the end of the output.
    this.process.input.skipMessage().catch(() => {});
    this.releaseOutput();
    return await this.#listen(client, () => this.session.follow(over));
  }

  async #listen(client: TurnClient, work: () => Promise<AgentTurn>): Promise<AgentTurn> {
    const { redactor } = this.#deps;
    const turn = await this.#deps.client.withListener(client, work);
    const { stopReason, reason } = turn;
    if (stopReason !== 'interrupted') return { ...turn, reason: redactor.redactJson(reason) };
    return { ...turn, reason: await this.#reasonOf(reason ?? { code: 'agent_exited' }) };
  }

  /** Detaches from a durable agent, which continues to work. Here its turn ends as interrupted. */
  async detach(): Promise<void> {
    this.#state = 'detached';
    this.#cancelForget();
    await this.session.close();
    this.process.detach();
  }

  /** Forgets the agent's output after a short time, unless the agent gets another message before. */
  forgetOutputSoon(): void {
    if (!this.process.durable || !this.alive) return;
    this.#cancelForget = this.#deps.clock.after(forgetAfterMs, () => this.process.forgetBefore());
  }

  /**
   * Ends the connection and the process, unless {@link detach} was called. Resolves when both have ended, or after a timeout. Idempotent.
   */
  async kill(): Promise<void> {
    if (this.#state === 'detached') return;
    this.#state = 'ended';
    this.#cancelForget();
    await waitAtMost(this.#deps.clock, endWithinMs, Promise.allSettled([this.session.close(), this.process.kill()]));
  }

  async #end(): Promise<Reason | null> {
    const cause = await this.session.closed;
    if (this.#state === 'alive') this.#state = 'ended';
    if (await this.isCutOff()) {
      await this.detach();
      return { code: 'agent_connection_lost' };
    }
    const reason = await this.#reasonOf(cause);
    await this.kill();
    return reason;
  }

  async #reasonOf(cause: Reason): Promise<Reason | null> {
    if (await this.isCutOff()) return cause;
    await this.process.settled();
    return this.process.reasonOf(cause);
  }
}
