import { type Conversation, isUnprompted, type StartedTurn, type TurnPosition } from '../../../domain/conversation.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import type { LiveAgent } from '../../agents/live-agent.ts';
import { waitAtMost } from '../../timers.ts';
import type { StepDeps } from '../conversation-reconciler.ts';
import { keepAfterTurn } from '../kept-changes.ts';
import { nothingRecorded, type RecordedTurn, readRecordedTurn } from './turn-recorder.ts';
import { microagentContext } from './microagent-context.ts';
import { Turn, type TurnBegin, type TurnParams } from './turn.ts';

/** The turns that run in this process, at most one for each conversation. */
export class Turns {
  readonly #deps: StepDeps;
  readonly #running = new Map<string, { readonly turn: Turn; readonly ended: Promise<void> }>();
  /** By conversation: the message whose turn is cancelled as soon as it runs here, and by which user. Dropped at the next turn. */
  readonly #cancelled = new Map<string, { readonly messageId: string; readonly userId: string | null }>();
  #isDetaching = false;

  constructor(deps: StepDeps) {
    this.#deps = deps;
  }

  /** Runs a turn. Does nothing if the message is no longer the next one. Rejects if the store fails. */
  async run(conversation: Conversation, sandbox: Sandbox, turn: StartedTurn, agent: LiveAgent, signal: AbortSignal): Promise<void> {
    const context = isUnprompted(turn) ? null : await microagentContext(this.#deps, conversation, turn.message, signal);
    const begin: TurnBegin = isUnprompted(turn) ? { kind: 'unprompted' } : { kind: 'message', context };
    const contextText = context?.text ?? null;
    const recorded = await nothingRecorded(this.#deps.store.events);
    await this.#run({ conversation, sandbox, turn, agent, begin, contextText, recorded, signal });
  }

  /** Runs the rest of a turn that an earlier process began. Rejects if the store fails. */
  async resume(
    conversation: Conversation, sandbox: Sandbox, turn: StartedTurn, position: TurnPosition, agent: LiveAgent, signal: AbortSignal,
  ): Promise<void> {
    let recorded: RecordedTurn;
    try {
      recorded = await readRecordedTurn(this.#deps.store.events, conversation, position);
    } catch (error) {
      // The agent continues, and is taken over again later.
      await agent.detach();
      throw error;
    }
    const { messageId, cancelled, cancelledBy = null } = turn;
    if (cancelled === true) this.#cancelled.set(conversation.id, { messageId, userId: cancelledBy });
    const begin: TurnBegin = { kind: 'resumed' };
    await this.#run({ conversation, sandbox, turn, agent, begin, contextText: position.context, recorded, signal });
  }

  get(conversationId: string): Turn | undefined {
    return this.#running.get(conversationId)?.turn;
  }

  /** Asks the agent to stop the turn of the message. If the turn does not run here, returns false, and cancels it as soon as it does. */
  cancel(conversationId: string, messageId: string, userId: string): boolean {
    const turn = this.get(conversationId);
    if (turn?.messageId === messageId) turn.cancel(userId);
    else if (this.#cancelled.get(conversationId)?.messageId !== messageId) this.#cancelled.set(conversationId, { messageId, userId });
    return turn?.messageId === messageId;
  }

  /** Detaches from the turns that continue without this process. Waits for the others, at most `withinMs` milliseconds. */
  async detach(withinMs: number): Promise<void> {
    this.#isDetaching = true;
    const ending = [...this.#running.values()].flatMap(({ turn, ended }) => (turn.detach() ? [] : ended));
    if (withinMs > 0) await waitAtMost(this.#deps.clock, withinMs, Promise.allSettled(ending));
  }

  async #run(params: TurnParams): Promise<void> {
    const { conversation, agent, begin, signal } = params;
    if (this.#isDetaching) {
      // The message stays in the queue, or the next process continues the turn.
      if (begin.kind === 'resumed') await agent.detach();
      return;
    }
    const turn = new Turn(this.#deps, params);
    const ended = turn.run();
    this.#running.set(conversation.id, { turn, ended });
    const cancelled = this.#cancelled.get(conversation.id);
    if (cancelled?.messageId === turn.messageId) turn.cancel(cancelled.userId);
    this.#cancelled.delete(conversation.id);
    try {
      await ended;
    } finally {
      this.#running.delete(conversation.id);
    }
    if (!turn.hasEnded) return;
    agent.forgetOutputSoon();
    // Before the next turn, so that only changes up to this turn are kept.
    await keepAfterTurn(this.#deps, conversation, signal);
  }
}
