import { statusAfterTurn } from '../../../domain/conversation-next-step.ts';
import { type Conversation, isEnded, type Message, type StartedMessage } from '../../../domain/conversation.ts';
import type { Reason } from '../../../domain/reason.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import type { AgentTurn } from '../../../ports/agent-protocol.ts';
import type { LiveAgent } from '../../agents/live-agent.ts';
import type { TurnClient } from '../../agents/redacting-agent-client.ts';
import { onAbort, retryThroughStoreOutage } from '../../timers.ts';
import { type Change, changeConversation } from '../conversation-records.ts';
import type { StepDeps } from '../conversation-reconciler.ts';
import type { MicroagentContext } from './microagent-context.ts';
import { type RecordedTurn, TurnRecorder } from './turn-recorder.ts';
import { type EndedTurn, endTurnChange, interruptionOf } from './turn-end.ts';
import { TurnPermissions } from './turn-permissions.ts';
import { TurnWatch } from './turn-watch.ts';

/** The time from a request to cancel a turn until an agent that ignores it is ended. */
const cancelWithinMs = 10_000;

export interface TurnParams {
  readonly conversation: Conversation;
  readonly sandbox: Sandbox;
  readonly queued: StartedMessage;
  readonly agent: LiveAgent;
  /** The text before the message. Null if there is none. */
  readonly context: MicroagentContext | null;
  /** The part of the turn that an earlier process ran; null if it begins here. */
  readonly earlier: RecordedTurn | null;
  /** The sequence number of the newest event before the turn. */
  readonly from: number;
  /** Fires when the turn and its agent must end. */
  readonly signal: AbortSignal;
}

/** Sends a message at most once: a write removes it from the queue before it is sent. It goes back only if it was not sent. */
export class Turn {
  readonly #deps: StepDeps;
  readonly #params: TurnParams;
  readonly #recorder: TurnRecorder;
  readonly #permissions: TurnPermissions;
  readonly #watch: TurnWatch;
  readonly #withdrawn = new AbortController();
  #cancelled: Pick<EndedTurn, 'userId'> | null = null;
  /** Set if Skep stops the agent because the agent is silent. */
  #silent: Reason | null = null;
  #prompted = false;
  #isDetached = false;
  #stopTimeout: () => void = () => {};

  constructor(deps: StepDeps, params: TurnParams) {
    this.#deps = deps;
    this.#params = params;
    const { conversation, queued, earlier, from, signal, agent: { process: { memory } } } = params;
    const recorded = { from, signal, memory, written: earlier?.written ?? 0, turnId: queued.messageId };
    this.#recorder = new TurnRecorder({ eventStore: deps.store.events, clock: deps.clock, ...recorded }, conversation);
    const hooks = { onAnswered: () => this.#watch.wake(), continuesElsewhere: () => this.#continuesElsewhere() };
    this.#permissions = new TurnPermissions(deps, params, this.#recorder, hooks);
    this.#watch = new TurnWatch(deps, {
      ...params,
      recorder: this.#recorder,
      permissions: this.#permissions,
      isCancelled: () => this.#withdrawn.signal.aborted,
      onSilent: (withinMs) => {
        this.#silent = { code: 'turn_silent', withinMs };
        this.#stop();
      },
    });
  }

  /** Asks the agent to stop, and ends the agent if it does not. Idempotent. */
  cancel(userId: string | null): void {
    this.#cancelled ??= { userId };
    this.#stop();
  }

  get #isUnprompted(): boolean {
    return this.#params.queued.unprompted === true;
  }

  get messageId(): string {
    return this.#params.queued.messageId;
  }

  /** Detaches from the turn if its agent continues without this process. Returns false if it does not. */
  detach(): boolean {
    const { agent } = this.#params;
    this.#isDetached ||= agent.process.durable;
    if (this.#isDetached && this.#prompted) void agent.detach();
    return this.#isDetached;
  }

  /** True if the agent has worked, and the end of its work is written. */
  get isFinished(): boolean {
    return this.#prompted && !this.#isDetached;
  }

  /** The message with its context, as the agent gets it. The log has only the message of the user. */
  get #message(): Message {
    const { context, earlier, queued: { message } } = this.#params;
    const text = earlier === null ? (context?.text ?? null) : earlier.agent.context;
    return text === null ? message : { content: [{ type: 'text', text }, ...message.content] };
  }

  check(): void {
    if (this.#prompted) this.#watch.check();
  }

  #stop(): void {
    if (this.#withdrawn.signal.aborted) return;
    this.#withdrawn.abort();
    if (!this.#prompted) return;
    const { agent } = this.#params;
    this.#stopTimeout = this.#deps.clock.after(cancelWithinMs, () => void agent.kill());
    agent.session.cancel().catch(() => {});
  }

  /** Resolves when the end is written. The signal ends the agent. A message that was not sent goes back into the queue. */
  async run(): Promise<void> {
    const { agent, earlier, signal, sandbox } = this.#params;
    if (earlier === null && !(await this.#begin())) return agent.releaseOutput();
    // The next process sends the message.
    if (this.#isDetached) return await agent.detach();
    if (earlier !== null) this.#deps.conversationSandboxes.touch(sandbox);
    const canPrompt = earlier !== null || (agent.alive && !signal.aborted);
    if (!canPrompt && this.#cancelled === null && !this.#isUnprompted) return await this.#requeue();
    const ended = await this.#prompt();
    if (ended !== null) await this.#end(ended);
  }

  async #begin(): Promise<boolean> {
    const { agent, context, from } = this.#params;
    const held = await agent.holdOutput();
    return await this.#dequeue(held === null ? {} : { agent: { ...held, from, context: context?.text ?? null } });
  }

  /** Takes the message from the queue. Returns false if it is not the next one, or the sandbox does not run. */
  async #dequeue(at: Pick<StartedMessage, 'agent'>): Promise<boolean> {
    const { queued, context } = this.#params;
    const { messageId } = queued;
    let wasTaken = false;
    const written = await this.#change((conversation) => {
      const { turn, queue } = conversation;
      // A failed write may have been stored.
      wasTaken = turn?.messageId === messageId;
      if (isEnded(conversation) || turn !== null || queue[0]?.messageId !== (this.#isUnprompted ? undefined : messageId)) return null;
      return {
        usesSandbox: true,
        to: {
          turn: { ...queued, ...at }, queue: this.#isUnprompted ? queue : queue.slice(1), executionStatus: 'running', statusReason: null,
          ...(context !== null && { microagents: context.microagents }),
        },
        actor: 'skep',
        reason: null,
        events: [...(context === null ? [] : [context.event]), { kind: 'turn_started', data: { messageId } }],
      };
    });
    return wasTaken || written !== null;
  }

  /** Returns how the turn has ended. Null if it continues without this process. */
  async #prompt(): Promise<EndedTurn | null> {
    const { agent, signal } = this.#params;
    if (this.#cancelled !== null) {
      agent.releaseOutput();
      return { stopReason: 'cancelled', reason: null, actor: 'user', ...this.#cancelled };
    }
    using _ = onAbort(signal, () => void agent.kill());
    this.#prompted = true;
    // The agent gets the message before anything else is done.
    const client: TurnClient = {
      update: async (update) => {
        this.#watch.noteOutput();
        // The next process reads it again.
        if (!this.#isDetached) await this.#recorder.record(update);
      },
      permission: (request, withdrawn) => this.#permissions.ask(request, AbortSignal.any([withdrawn, this.#withdrawn.signal])),
    };
    const prompting = this.#isUnprompted ? agent.follow(this.#watch.over, client) : agent.prompt(this.#message, client);
    using watch = this.#watch;
    watch.start();
    try {
      const ended = await prompting;
      this.#isDetached ||= ended.stopReason === 'interrupted' && (await this.#continuesElsewhere());
      if (this.#isDetached) {
        await this.#recorder.settled();
        return null;
      }
      // The agent may get its next message now, so the timeout must not end it.
      this.#withdrawn.abort();
      this.#stopTimeout();
      await this.#recorder.finish();
      return await this.#resultOf(ended);
    } catch (error) {
      // The agent's output can't be written, so the agent must not continue.
      this.#recorder.discard();
      await agent.kill();
      throw error;
    } finally {
      this.#stopTimeout();
    }
  }

  /** Returns true if the next process continues the turn, or this one because it has lost only the connection to the agent. */
  async #continuesElsewhere(): Promise<boolean> {
    return this.#isDetached || (!this.#params.signal.aborted && (await this.#params.agent.isCutOff()));
  }

  /** Returns how the turn ended, with the causes that the agent does not know. */
  async #resultOf(ended: AgentTurn): Promise<EndedTurn> {
    const { conversation, signal } = this.#params;
    const { clock, conversationSandboxes } = this.#deps;
    // A turn that ended by itself at the last moment keeps its result.
    const { stopReason } = ended;
    if (signal.aborted && stopReason === 'interrupted') return { stopReason, reason: { code: 'interrupted_by_shutdown' }, actor: 'skep' };
    // The turn is cancelled even if the agent had to be ended, or reported the request as an error.
    if (this.#cancelled !== null && (stopReason === 'cancelled' || statusAfterTurn(stopReason) === 'error')) {
      return { ...ended, stopReason: 'cancelled', actor: 'user', ...this.#cancelled };
    }
    if (this.#silent !== null && this.#cancelled === null) return { stopReason: 'failed', reason: this.#silent, actor: 'skep' };
    // An agent also ends its turn as cancelled if its request for permission is refused.
    if (stopReason !== 'interrupted') return { ...ended, actor: 'agent' };
    const sandbox = await retryThroughStoreOutage(clock, signal, () => conversationSandboxes.find(conversation));
    return { ...ended, ...interruptionOf(sandbox) };
  }

  async #end({ stopReason, reason, actor, userId }: EndedTurn): Promise<void> {
    const { queued } = this.#params;
    await this.#change(({ turn, permission, archivedAt }) => {
      if (turn?.messageId !== queued.messageId) return null;
      const ended = { ...endTurnChange({ turn, permission, archivedAt }, stopReason, reason, actor), userId };
      return this.#prompted ? ended : { ...ended, to: { ...ended.to, microagents: this.#params.conversation.microagents } };
    });
  }

  async #requeue(): Promise<void> {
    const { queued, agent, conversation: { microagents } } = this.#params;
    agent.releaseOutput();
    await this.#change(({ turn, permission, queue, archivedAt }) => {
      if (turn?.messageId !== queued.messageId) return null;
      const ended = endTurnChange({ turn, permission, archivedAt }, 'interrupted', { code: 'message_requeued' }, 'skep');
      if (archivedAt !== null) return ended;
      return { ...ended, to: { ...ended.to, queue: [queued, ...queue], executionStatus: 'idle', statusReason: null, microagents } };
    });
  }

  async #change(change: Change): Promise<Conversation | null> {
    const { conversation, signal } = this.#params;
    return await retryThroughStoreOutage(this.#deps.clock, signal, () => changeConversation(this.#deps, conversation.id, change));
  }
}
