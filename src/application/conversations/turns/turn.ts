import { statusAfterTurn } from '../../../domain/conversation-next-step.ts';
import { type Conversation, isUnprompted, type Message, type StartedTurn } from '../../../domain/conversation.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import { onAbort } from '../../../ports/abort-signals.ts';
import type { AgentTurn } from '../../../ports/agent-protocol.ts';
import type { LiveAgent } from '../../agents/live-agent.ts';
import type { TurnClient } from '../../agents/redacting-agent-client.ts';
import { retryThroughStoreOutage } from '../../timers.ts';
import { type Change, changeConversation, type ConversationChange } from '../conversation-records.ts';
import type { StepDeps } from '../conversation-reconciler.ts';
import { type RecordedTurn, TurnRecorder } from './turn-recorder.ts';
import { beginTurnChange, type EndedTurn, endTurnChange, interruptionOf, type NewTurn } from './turn-changes.ts';
import { TurnPermissions } from './turn-permissions.ts';
import { TurnWatch } from './turn-watch.ts';

/** The time from a request to cancel a turn until an agent that ignores it is ended. */
const cancelWithinMs = 10_000;

/** How the turn begins in this process. `resumed`: an earlier process began it, in one of the other ways. */
export type TurnBegin = NewTurn | { readonly kind: 'resumed' };

export interface TurnParams {
  readonly conversation: Conversation;
  readonly sandbox: Sandbox;
  readonly turn: StartedTurn;
  readonly agent: LiveAgent;
  readonly begin: TurnBegin;
  /** The text that the agent gets before the message. Null if there is none. */
  readonly contextText: string | null;
  readonly recorded: RecordedTurn;
  /** Fires when the turn and its agent must end. */
  readonly signal: AbortSignal;
}

/**
 * `begins`: the agent does not work on it yet.
 * `works`: the agent works, and can be asked to stop.
 * `ended`: the agent's work has ended here, and is being written, or is written. A stop has no effect any more.
 * `detached`: the turn continues without this object, in the next process or in this one.
 *
 * The states of the agent itself are a table in `agents/live-agent.ts`.
 */
type TurnState = 'begins' | 'works' | 'ended' | 'detached';

type Stop = { readonly by: 'user'; readonly userId: string | null } | { readonly by: 'silence'; readonly withinMs: number };

/** Sends a message at most once: a write removes it from the queue before it is sent. It goes back only if it was not sent. */
export class Turn {
  readonly #deps: StepDeps;
  readonly #params: TurnParams;
  #state: TurnState = 'begins';
  /** Who stops the agent. Null as long as nobody does. */
  #stopped: Stop | null = null;
  /** Fires when Skep first asks the agent to stop. */
  readonly #stopRequest = new AbortController();
  #stopTimeout: () => void = () => {};
  /** Null until the agent works. */
  #watch: TurnWatch | null = null;

  constructor(deps: StepDeps, params: TurnParams) {
    this.#deps = deps;
    this.#params = params;
  }

  get messageId(): string {
    return this.#params.turn.messageId;
  }

  /** True if the agent has worked, and its work has ended here. */
  get hasEnded(): boolean {
    return this.#state === 'ended';
  }

  get #isDetached(): boolean {
    return this.#state === 'detached';
  }

  /** Asks the agent to stop, and ends the agent if it does not. Idempotent. */
  cancel(userId: string | null): void {
    this.#stop({ by: 'user', userId });
  }

  /** Detaches from the turn if its agent continues without this process. Returns false if it does not. */
  detach(): boolean {
    const { agent } = this.#params;
    if (!agent.process.durable) return false;
    if (this.#state === 'works' || this.#state === 'ended') void agent.detach();
    this.#state = 'detached';
    return true;
  }

  check(): void {
    this.#watch?.check();
  }

  #stop(stop: Stop): void {
    if (this.#state === 'ended') return;
    const before = this.#stopped;
    if (before?.by !== 'user') this.#stopped = stop;
    if (before !== null) return;
    this.#stopRequest.abort();
    if (this.#state !== 'works') return;
    const { agent } = this.#params;
    this.#stopTimeout = this.#deps.clock.after(cancelWithinMs, () => void agent.kill());
    agent.session.cancel().catch(() => {});
  }

  /** Resolves when the end is written. The signal ends the agent. A message that was not sent goes back into the queue. */
  async run(): Promise<void> {
    const { agent, begin, signal, sandbox } = this.#params;
    if (begin.kind === 'resumed') {
      // Do not await here: a request to cancel the turn would not reach the agent, since it does not work for this process yet.
      this.#deps.conversationSandboxes.touch(sandbox);
    } else {
      if (!(await this.#begin(begin))) return agent.releaseOutput();
      // The next process sends the message.
      if (this.#isDetached) return await agent.detach();
      const canSend = begin.kind === 'unprompted' || (agent.alive && !signal.aborted);
      if (this.#stopped !== null || !canSend) return await this.#endUnsent();
    }
    const ended = await this.#work();
    if (ended !== 'detached') await this.#end((conversation) => endTurnChange(conversation, ended));
  }

  /** Writes the beginning of the turn. Returns false if something else comes next, or the sandbox does not run. */
  async #begin(begin: NewTurn): Promise<boolean> {
    const { agent, turn, recorded, contextText } = this.#params;
    const held = await agent.holdOutput();
    // The record keeps the position of the turn as its `agent`. The log was read up to the beginning of the turn.
    const position = held === null ? {} : { agent: { ...held, from: recorded.lastSequence, context: contextText } };
    let wasTaken = false;
    const written = await this.#change((conversation) => {
      // A failed write may have been stored.
      wasTaken = conversation.turn?.messageId === turn.messageId;
      return beginTurnChange(conversation, begin, { ...turn, ...position });
    });
    return wasTaken || written !== null;
  }

  /** Lets the agent work until the turn ends here. */
  async #work(): Promise<EndedTurn | 'detached'> {
    const { turn, agent, signal } = this.#params;
    using _ = onAbort(signal, () => void agent.kill());
    this.#state = 'works';
    const recorder = this.#newRecorder();
    using watch = this.#newWatch(recorder);
    this.#watch = watch;
    const client = this.#newClient(recorder, watch);
    // The agent gets the message before the sandbox is checked.
    const working = isUnprompted(turn) ? agent.follow(watch.quietSignal, client) : agent.prompt(this.#message, client);
    watch.start();
    try {
      const ended = await working;
      if (ended.stopReason === 'interrupted' && (await this.#continuesElsewhere())) this.#state = 'detached';
      if (this.#isDetached) {
        await recorder.settled();
        return 'detached';
      }
      // The agent may get its next message now, so the timeout must not end it.
      this.#state = 'ended';
      this.#stopTimeout();
      await recorder.finish();
      return await this.#resultOf(ended);
    } catch (error) {
      // The agent's output can't be written, so the agent must not continue.
      recorder.discard();
      await agent.kill();
      throw error;
    } finally {
      this.#stopTimeout();
    }
  }

  #newRecorder(): TurnRecorder {
    const { store: { events: eventStore }, clock } = this.#deps;
    const { conversation, turn, agent, recorded, signal } = this.#params;
    return new TurnRecorder({ eventStore, clock, memory: agent.process.memory, recorded, signal, turnId: turn.messageId }, conversation);
  }

  #newWatch(recorder: TurnRecorder): TurnWatch {
    const onSilent = (withinMs: number): void => this.#stop({ by: 'silence', withinMs });
    return new TurnWatch(this.#deps, { ...this.#params, recorder, stopped: this.#stopRequest.signal, onSilent });
  }

  #newClient(recorder: TurnRecorder, watch: TurnWatch): TurnClient {
    const continuesElsewhere = this.#continuesElsewhere;
    const permissions = new TurnPermissions(this.#deps, { ...this.#params, recorder, watch, continuesElsewhere });
    return {
      update: async (update) => {
        watch.noteOutput();
        // The next process reads it again.
        if (!this.#isDetached) await recorder.record(update);
      },
      permission: (request, withdrawn) => permissions.ask(request, AbortSignal.any([withdrawn, this.#stopRequest.signal])),
    };
  }

  /** The message with the text before it. The log has only the message of the user. */
  get #message(): Message {
    const { contextText, turn: { message } } = this.#params;
    return contextText === null ? message : { content: [{ type: 'text', text: contextText }, ...message.content] };
  }

  /** Returns true if the next process continues the turn, or this one because it has lost only the connection to the agent. */
  readonly #continuesElsewhere = async (): Promise<boolean> =>
    this.#isDetached || (!this.#params.signal.aborted && (await this.#params.agent.isCutOff()));

  /** Returns how the turn ended, with the causes that the agent does not know. */
  async #resultOf(ended: AgentTurn): Promise<EndedTurn> {
    const { conversation, signal } = this.#params;
    const { clock, conversationSandboxes } = this.#deps;
    // A turn that ended by itself at the last moment keeps its result.
    const { stopReason } = ended;
    if (signal.aborted && stopReason === 'interrupted') return { stopReason, reason: { code: 'interrupted_by_shutdown' }, actor: 'skep' };
    // The request to stop ended the turn also if the agent had to be ended, or reported the request as an error.
    const stopped = stopReason === 'cancelled' || statusAfterTurn(stopReason) === 'error' ? this.#stopped : null;
    if (stopped?.by === 'user') {
      return { ...ended, stopReason: 'cancelled', actor: 'user', userId: stopped.userId };
    }
    if (stopped?.by === 'silence') {
      return { stopReason: 'failed', reason: { code: 'turn_silent', withinMs: stopped.withinMs }, actor: 'skep' };
    }
    // An agent also ends its turn as cancelled if its request for permission is refused.
    if (stopReason !== 'interrupted') return { ...ended, actor: 'agent' };
    const sandbox = await retryThroughStoreOutage(clock, signal, () => conversationSandboxes.find(conversation));
    return { ...ended, ...interruptionOf(sandbox) };
  }

  /** Ends the turn before the agent has got the message. If nobody has cancelled it, the message goes back into the queue. */
  async #endUnsent(): Promise<void> {
    // The microagents of the message were not sent.
    const { agent, turn, conversation: { microagents } } = this.#params;
    agent.releaseOutput();
    await this.#end((conversation) => {
      // The user can cancel it until this is written.
      if (this.#stopped?.by === 'user') {
        const { userId } = this.#stopped;
        return endTurnChange(conversation, { stopReason: 'cancelled', reason: null, actor: 'user', userId }, { microagents });
      }
      const { archivedAt, queue } = conversation;
      const requeued = { queue: [turn, ...queue], executionStatus: 'idle', statusReason: null, microagents } as const;
      const ended: EndedTurn = { stopReason: 'interrupted', reason: { code: 'message_requeued' }, actor: 'skep' };
      return endTurnChange(conversation, ended, archivedAt === null ? requeued : {});
    });
  }

  /** Writes the end. `end` returns the change of the latest record. */
  async #end(end: (conversation: Conversation) => ConversationChange): Promise<void> {
    await this.#change((conversation) => (conversation.turn?.messageId === this.messageId ? end(conversation) : null));
  }

  async #change(change: Change): Promise<Conversation | null> {
    const { conversation, signal } = this.#params;
    return await retryThroughStoreOutage(this.#deps.clock, signal, () => changeConversation(this.#deps, conversation.id, change));
  }
}
