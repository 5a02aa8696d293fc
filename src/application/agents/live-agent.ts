import type { Message, TurnPosition } from '../../domain/conversation.ts';
import type { Reason } from '../../domain/reason.ts';
import type { AgentClient, AgentSession, AgentTurn, AgentPermission, AgentUpdate } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import type { SecretRedactor } from '../secrets.ts';
import { waitAtMost } from '../timers.ts';
import type { AgentProcess } from './agent-process.ts';

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

/** An agent in a sandbox, with its session. The deployment's secrets are redacted in its output. */
export class LiveAgent {
  /** Resolves with the reason when it has ended. */
  readonly ended: Promise<Reason | null>;
  readonly session: AgentSession;
  readonly process: AgentProcess;
  readonly #deps: LiveAgentDeps;
  #alive = true;
  #isDetached = false;
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
    return this.#alive;
  }

  /** True if the agent has begun to work without a message, and its output waits for the next turn. */
  get hasUnpromptedWork(): boolean {
    return this.#deps.client.unprompted.hasBegun;
  }

  /** Returns true if only the connection to the agent was lost, for example by a restart of the engine. Then it can be taken over. */
  async isCutOff(): Promise<boolean> {
    if (!(await this.process.isEndUncertain())) return false;
    return await (this.#mayRun ??= this.#deps.mayRun());
  }

  /**
   * Holds back the agent's output until it gets the next message or `process.releaseOutput` is called. Returns the state from which another
   * process can continue the turn. Null if the agent is not durable.
   */
  async holdOutput(): Promise<Omit<TurnPosition, 'from' | 'context'> | null> {
    const { process, session } = this;
    if (!process.durable) return null;
    this.#cancelForget();
    // Output that waits for the turn is not handled before it begins.
    await Promise.race([process.holdOutput(), this.#deps.client.unprompted.begun]);
    const requestId = await session.nextRequest();
    return { sessionId: session.id, requestId, ...process.offsets };
  }

  /** Sends the message and resolves when the turn has ended. Rejects only if the client does. */
  async prompt(message: Message, client: TurnClient): Promise<AgentTurn> {
    this.process.releaseOutputAfterInput();
    return await this.#listen(client, () => this.session.prompt(message));
  }

  /** Takes the work that the agent does without a message, until the signal fires. Rejects only if the client does. */
  async follow(over: AbortSignal, client: TurnClient): Promise<AgentTurn> {
    // Not awaited, so a cancel that comes next is part of the turn. A failed write shows at the end of the output.
    this.process.skipNoInput().catch(() => {});
    this.process.releaseOutput();
    return await this.#listen(client, () => this.session.follow(over));
  }

  async #listen(client: TurnClient, work: () => Promise<AgentTurn>): Promise<AgentTurn> {
    const { redactor } = this.#deps;
    const turn = await this.#deps.client.withListener(client, work);
    const { stopReason, reason } = turn;
    if (stopReason !== 'interrupted') return { ...turn, reason: redactor.data(reason) };
    return { ...turn, reason: await this.#reasonOf(reason ?? { code: 'agent_exited' }) };
  }

  /** Detaches from a durable agent, which continues to work. Here its turn ends as interrupted. */
  async detach(): Promise<void> {
    this.#isDetached = true;
    this.#alive = false;
    this.#cancelForget();
    await this.session.close();
    this.process.detach();
  }

  /** Forgets the agent's output after a short time, unless the agent gets another message before. */
  forgetOutputSoon(): void {
    if (!this.process.durable || !this.#alive) return;
    this.#cancelForget = this.#deps.clock.after(forgetAfterMs, () => this.process.forgetBefore());
  }

  /**
   * Ends the connection and the process, unless {@link detach} was called. Resolves when both have ended, or after a timeout. Idempotent.
   */
  async kill(): Promise<void> {
    const { session, process } = this;
    if (this.#isDetached) return;
    this.#alive = false;
    this.#cancelForget();
    await waitAtMost(this.#deps.clock, endWithinMs, Promise.allSettled([session.close(), process.kill()]));
  }

  async #end(): Promise<Reason | null> {
    const cause = await this.session.closed;
    this.#alive = false;
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

class UnpromptedWork {
  readonly #begun = Promise.withResolvers<void>();
  hasBegun = false;

  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  begin(): void {
    this.hasBegun = true;
    this.#begun.resolve();
  }
}

type Chunk = Extract<AgentUpdate, { kind: 'message_chunk' }>;

/** What a turn takes from its agent. */
export type TurnClient = Omit<AgentClient, 'onUnpromptedWork'>;

/** Redacts a secret even if it is split over two chunks of a message. Passes updates on only while a turn runs. */
export class RedactingAgentClient implements AgentClient {
  /** The work that the agent has begun without a message; replaced when a turn takes it. */
  unprompted = new UnpromptedWork();
  readonly #redactor: SecretRedactor;
  readonly #onUnpromptedWork: () => void;
  #listener: TurnClient | null = null;
  #held: Chunk | null = null;

  constructor(redactor: SecretRedactor, onUnpromptedWork: () => void) {
    this.#redactor = redactor;
    this.#onUnpromptedWork = onUnpromptedWork;
  }

  /** Passes everything to the listener until the work has ended. */
  async withListener<T>(listener: TurnClient, work: () => Promise<T>): Promise<T> {
    this.#listener = listener;
    this.unprompted = new UnpromptedWork();
    try {
      const result = await work();
      await this.#flush();
      return result;
    } finally {
      this.#listener = null;
      this.#held = null;
    }
  }

  async update(update: AgentUpdate): Promise<void> {
    if (update.kind !== 'message_chunk') {
      await this.#flush();
      await this.#listener?.update(this.#redactor.data(update));
      return;
    }
    if (this.#held !== null && (this.#held.channel !== update.channel || this.#held.messageId !== update.messageId)) await this.#flush();
    const { safe, held } = this.#redactor.partial((this.#held?.text ?? '') + update.text);
    this.#held = held === '' ? null : { ...update, text: held };
    if (safe !== '') await this.#listener?.update({ ...update, text: safe });
  }

  async permission(request: AgentPermission, signal: AbortSignal): Promise<string | null> {
    await this.#flush();
    const { options, ...shown } = request;
    // The agent gets the id of an option back, so ids stay as they are.
    const redacted = options.map((option) => ({ ...option, name: this.#redactor.text(option.name) }));
    return (await this.#listener?.permission({ ...this.#redactor.data(shown), options: redacted }, signal)) ?? null;
  }

  onUnpromptedWork(): void {
    this.unprompted.begin();
    this.#onUnpromptedWork();
  }

  async #flush(): Promise<void> {
    const held = this.#held;
    this.#held = null;
    if (held !== null) await this.#listener?.update({ ...held, text: this.#redactor.text(held.text) });
  }
}
