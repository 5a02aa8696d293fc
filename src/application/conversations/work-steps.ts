import type { Conversation, QueuedMessage } from '../../domain/conversation.ts';
import { nextWorkStep } from '../../domain/conversation-next-step.ts';
import { isFailure } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Agents } from '../agents/agents.ts';
import { openAgent } from './open-agent.ts';
import { pausedByOwner } from './paused-by-owner.ts';
import type { ConversationRecords } from './conversation-records.ts';
import type { SandboxAccess } from './sandbox-access.ts';
import { endOfTurn, turnEnded } from './turns/turn.ts';
import type { Turns } from './turns/turns.ts';
import { isStoreFailure, wordsOf } from './start-steps.ts';

export interface ConversationWorkDeps {
  readonly records: ConversationRecords;
  readonly access: SandboxAccess;
  readonly agents: Agents;
  readonly turns: Turns;
  readonly events: EventStore;
  readonly logger: Logger;
}

/** Takes the steps of a conversation that is READY: wakes what rests, starts what is gone, and hands over one message at a time. */
export class ConversationWork {
  readonly #deps: ConversationWorkDeps;

  constructor(deps: ConversationWorkDeps) {
    this.#deps = deps;
  }

  /** Takes the next step; false when there is none now. */
  async step(conversation: Conversation, signal: AbortSignal): Promise<boolean> {
    const { access, agents, events } = this.#deps;
    const sandbox = await access.find(conversation);
    const waits = conversation.queue.length > 0;
    const held = waits && sandbox?.status === 'PAUSED' && (await pausedByOwner(events, conversation));
    const step = nextWorkStep(conversation, sandbox, agents.get(conversation.id) !== null, held);
    switch (step.kind) {
      case 'none':
        if (waits) access.await(conversation);
        return false;
      case 'interrupt':
        await this.#interrupt(conversation);
        return true;
      case 'give-up':
        await this.#giveUp(conversation, step.detail);
        return true;
      case 'resume-sandbox':
        return await this.#resume(conversation);
      case 'await-sandbox':
        return await access.moved(conversation, sandbox, signal);
      case 'start-agent':
        return await this.#startAgent(conversation, step.sandbox, signal);
      case 'take-turn':
        await this.#takeTurn(conversation, step.sandbox, step.message, signal);
        return true;
    }
  }

  /** Ends a turn that was under way when an earlier process ended: its message is not handed over again. */
  async #interrupt({ id }: Conversation): Promise<void> {
    await this.#deps.records.change(id, ({ turn, permission }) =>
      turn === null ? null : endOfTurn({ turn, permission }, 'interrupted', 'Skep ended in the midst of it; the message is not handed over again', 'skep'),
    );
  }

  async #giveUp({ id }: Conversation, loss: string): Promise<void> {
    await this.#deps.agents.end(id);
    await this.#deps.records.change(id, ({ turn, permission, queue }) => {
      const detail = queue.length === 0 ? loss : `${loss}; messages that waited (${queue.length}) were not handed over`;
      const events = turn === null ? [] : turnEnded({ turn, permission }, 'interrupted');
      return { to: { turn: null, permission: null, queue: [], executionStatus: 'error', statusDetail: detail }, actor: 'skep', reason: detail, events };
    });
  }

  /** Wakes the sandbox for what waits. Where that is refused, it is tried again when the sandbox is moved, and at the next sweep. */
  async #resume(conversation: Conversation): Promise<boolean> {
    try {
      await this.#deps.access.resume(conversation);
      return true;
    } catch (error) {
      if (!isFailure(error) || isStoreFailure(error)) throw error;
      this.#deps.access.await(conversation);
      await this.#note(conversation, `a message waits: ${error.message}`);
      return false;
    }
  }

  async #startAgent(conversation: Conversation, sandbox: Sandbox, signal: AbortSignal): Promise<boolean> {
    const { access, agents, records, logger } = this.#deps;
    const rest = access.keepAwake(sandbox);
    try {
      await openAgent(agents, records, conversation, sandbox, signal, () => ({}));
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      if (isStoreFailure(error)) throw error;
      if (isFailure(error)) {
        await this.#note(conversation, `a message waits: ${error.message}`);
        return false;
      }
      const words = wordsOf(error);
      if (words === null) logger.error({ conversation: conversation.id, error }, 'an agent could not be started');
      await this.#fail(conversation, words ?? 'its agent could not be started; the log tells more');
      return true;
    } finally {
      rest();
    }
  }

  /** The next message can't be handed over; its turn is over before it has begun. */
  async #fail({ id }: Conversation, detail: string): Promise<void> {
    await this.#deps.records.change(id, ({ deletedAt, turn, queue: [head, ...queue] }) => {
      if (deletedAt !== null || turn !== null || head === undefined) return null;
      const ended = endOfTurn({ turn: head, permission: null }, 'failed', detail, 'skep');
      return { ...ended, to: { ...ended.to, queue }, events: [{ kind: 'turn_started', data: { messageId: head.messageId } }, ...(ended.events ?? [])] };
    });
  }

  async #takeTurn(conversation: Conversation, sandbox: Sandbox, message: QueuedMessage, signal: AbortSignal): Promise<void> {
    const agent = this.#deps.agents.get(conversation.id);
    if (agent !== null) await this.#deps.turns.run(conversation, sandbox, message, agent, signal);
  }

  async #note({ id }: Conversation, detail: string): Promise<void> {
    await this.#deps.records.change(id, (conversation) =>
      conversation.statusDetail === detail || conversation.deletedAt !== null ? null : { to: { statusDetail: detail }, actor: 'skep', reason: null },
    );
  }
}
