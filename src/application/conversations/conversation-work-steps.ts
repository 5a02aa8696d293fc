import { nextWorkStep } from '../../domain/conversation-next-step.ts';
import type { Conversation, QueuedMessage } from '../../domain/conversation.ts';
import type { EventKind } from '../../domain/event.ts';
import { type AnyFailure, isFailure, reasonOfFailure } from '../../domain/failure.ts';
import { isSameReason, type Reason } from '../../domain/reason.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { StepDeps } from './conversation-reconciler.ts';
import { isStoreFailure, reasonOf } from './conversation-start-steps.ts';
import { openAgent } from './open-agent.ts';
import { endOfTurn, turnEnded, type Turns } from './turns/turns.ts';

/** Takes the steps of a conversation that is READY: resumes its sandbox, starts its agent, and runs one turn at a time. */
export class ConversationWork {
  readonly #deps: StepDeps;
  readonly #turns: Turns;

  constructor(deps: StepDeps, turns: Turns) {
    this.#deps = deps;
    this.#turns = turns;
  }

  /** Takes the next step. Returns false if there is none now. */
  async step(conversation: Conversation, signal: AbortSignal): Promise<boolean> {
    const { access, agents, events } = this.#deps;
    const sandbox = await access.find(conversation);
    const waits = conversation.queue.length > 0;
    const held = waits && sandbox?.status === 'PAUSED' && (await isPausedByOwner(events, conversation));
    const step = nextWorkStep(conversation, sandbox, agents.get(conversation.id) !== null, held);
    switch (step.kind) {
      case 'none':
        if (waits) access.await(conversation);
        return false;
      case 'interrupt':
        await this.#interrupt(conversation);
        return true;
      case 'fail':
        await this.#fail(conversation, step.reason);
        return true;
      case 'resume-sandbox':
        return await this.#resume(conversation);
      case 'await-sandbox':
        return await access.moved(conversation, sandbox, signal);
      case 'start-agent':
        return await this.#startAgent(conversation, step.sandbox, signal);
      case 'run-turn':
        await this.#runTurn(conversation, step.sandbox, step.message, signal);
        return true;
    }
  }

  /** Ends a turn that ran when an earlier process ended. Its message is not sent again. */
  async #interrupt({ id }: Conversation): Promise<void> {
    await this.#deps.records.change(id, ({ turn, permission }) =>
      turn === null ? null : endOfTurn({ turn, permission }, 'interrupted', { code: 'interrupted_by_restart' }, 'skep'),
    );
  }

  async #fail({ id }: Conversation, loss: Reason): Promise<void> {
    await this.#deps.agents.end(id);
    await this.#deps.records.change(id, ({ turn, permission, queue }) => {
      const reason: Reason = queue.length === 0 ? loss : { code: 'messages_dropped', count: queue.length, cause: loss };
      const events = turn === null ? [] : turnEnded({ turn, permission }, 'interrupted');
      const to = { turn: null, permission: null, queue: [], executionStatus: 'error', statusReason: reason } as const;
      return { to, actor: 'skep', reason, events };
    });
  }

  /** Resumes the sandbox for the queue. If that fails, it is tried again when the sandbox changes, and at the next sweep. */
  async #resume(conversation: Conversation): Promise<boolean> {
    try {
      await this.#deps.access.resume(conversation);
      return true;
    } catch (error) {
      if (!isFailure(error) || isStoreFailure(error)) throw error;
      this.#deps.access.await(conversation);
      await this.#noteWaiting(conversation, error);
      return false;
    }
  }

  async #startAgent(conversation: Conversation, sandbox: Sandbox, signal: AbortSignal): Promise<boolean> {
    try {
      await openAgent(this.#deps, conversation, sandbox, signal, () => ({}));
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      if (isStoreFailure(error)) throw error;
      if (isFailure(error)) {
        await this.#noteWaiting(conversation, error);
        return false;
      }
      const reason = reasonOf(error);
      if (reason === null) this.#deps.logger.error({ conversation: conversation.id, error }, 'an agent could not be started');
      await this.#failTurn(conversation, reason ?? { code: 'agent_start_failed', cause: { code: 'internal_error' } });
      return true;
    }
  }

  /** The agent can't get the next message: its turn ends before it begins. */
  async #failTurn({ id }: Conversation, reason: Reason): Promise<void> {
    await this.#deps.records.change(id, ({ deletedAt, turn, queue: [head, ...queue] }) => {
      if (deletedAt !== null || turn !== null || head === undefined) return null;
      const ended = endOfTurn({ turn: head, permission: null }, 'failed', reason, 'skep');
      const started = { kind: 'turn_started', data: { messageId: head.messageId } } as const;
      return { ...ended, to: { ...ended.to, queue }, events: [started, ...(ended.events ?? [])] };
    });
  }

  async #runTurn(conversation: Conversation, sandbox: Sandbox, message: QueuedMessage, signal: AbortSignal): Promise<void> {
    const agent = this.#deps.agents.get(conversation.id);
    if (agent !== null) await this.#turns.run(conversation, sandbox, message, agent, signal);
  }

  async #noteWaiting({ id }: Conversation, failure: AnyFailure): Promise<void> {
    const reason: Reason = { code: 'message_waiting', cause: reasonOfFailure(failure) };
    await this.#deps.records.change(id, ({ statusReason, deletedAt }) =>
      deletedAt !== null || isSameReason(statusReason, reason) ? null : { to: { statusReason: reason }, actor: 'skep', reason: null },
    );
  }
}

const kinds: readonly EventKind[] = ['message', 'sandbox_moved'];
const pageSize = 1000;

/**
 * Returns true if the owner paused the sandbox after the last message of the conversation. Then the queue does not resume it,
 * only the next message does. After any other pause, also by an end from outside, the queue resumes it.
 */
export async function isPausedByOwner(store: EventStore, { id, ownerId, sandboxId }: Conversation): Promise<boolean> {
  let paused = false;
  for (let after = 0; ; ) {
    const events = await store.read({ ownerId, conversationId: id, sandboxId, kinds }, after, pageSize);
    for (const { kind, data, actor } of events) {
      if (kind === 'message' && data.role === 'user') paused = false;
      if (kind === 'sandbox_moved' && data.to === 'PAUSING') paused = actor === 'user';
    }
    const last = events.at(-1);
    if (events.length < pageSize || last === undefined) return paused;
    after = last.sequence;
  }
}
