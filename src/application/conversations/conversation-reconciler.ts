import { isUnsettled, startSteps } from '../../domain/conversation-next-step.ts';
import type { Conversation } from '../../domain/conversation.ts';
import type { Agents } from '../agents/agents.ts';
import type { ExecutionReconciler } from '../executions/execution-reconciler.ts';
import type { Executions } from '../executions/executions.ts';
import { KeyedWorker, type KeyedRun } from '../keyed-worker.ts';
import type { Microagents } from '../microagents/microagents.ts';
import type { SandboxReconciler } from '../sandboxes/sandbox-reconciler.ts';
import { findIntactUsers } from '../sandboxes/sandbox-records.ts';
import type { ConversationDeps } from './conversations.ts';
import { changeConversation } from './conversation-records.ts';
import { takeStartStep } from './conversation-start-steps.ts';
import { interruptTurn, takeWorkStep } from './conversation-work-steps.ts';
import { keepBeforeEnd } from './kept-changes.ts';
import { ConversationSandboxes } from './conversation-sandboxes.ts';
import { permissionWithdrawal, withdrawMessageChange } from './turns/turn-changes.ts';
import { Turns } from './turns/turns.ts';

export interface ConversationReconcilerDeps extends ConversationDeps {
  readonly sandboxReconciler: SandboxReconciler;
  readonly microagents: Microagents;
  readonly agents: Agents;
  readonly executions: Pick<Executions, 'run'>;
  readonly executionReconciler: Pick<ExecutionReconciler, 'ended'>;
  /** Ends the conversations of one sandbox one after another. If two ended at once, both would find the other and keep the sandbox. */
  readonly sandboxEnds: { runExclusive(sandboxId: string, end: () => Promise<void>): Promise<void> };
  readonly product: string;
  /** How long the setup script of a repository may run. */
  readonly setupTimeoutMs: number;
  /** How long a shutdown waits for turns that can't continue without this process. */
  readonly drainTimeoutMs: number;
}

export interface StepDeps extends ConversationReconcilerDeps {
  readonly conversationSandboxes: ConversationSandboxes;
}

/**
 * Moves a conversation through its start, its turns and its end. Each step follows from the record, which is written before the step, so a
 * conversation continues where an earlier process left it. A turn runs inside one step. If the record has a turn at the beginning of a
 * step, no process runs it. It continues here if its agent still runs.
 */
export class ConversationReconciler {
  readonly #deps: StepDeps;
  readonly #turns: Turns;
  readonly #runs: KeyedWorker<Conversation | null>;
  /** The first steps that run for their callers, by conversation. */
  readonly #firstSteps = new Map<string, Promise<unknown>>();
  readonly #unsubscribe: () => void;
  #closed = false;

  constructor(deps: ConversationReconcilerDeps) {
    const conversationSandboxes = new ConversationSandboxes(deps);
    this.#deps = { ...deps, conversationSandboxes };
    this.#turns = new Turns(this.#deps);
    this.#runs = new KeyedWorker((id, run) => this.#takeSteps(id, run));
    deps.agents.onUnpromptedWork = (id) => this.enqueue(id);
    this.#unsubscribe = deps.store.events.subscribe(({ sandboxIds }) => {
      for (const sandboxId of sandboxIds) for (const id of conversationSandboxes.takeWaiting(sandboxId)) this.enqueue(id);
    });
  }

  /** Runs the first step of a new conversation for its caller, who gets its result or failure. The other steps wait for its end. */
  async runFirstStep<T>(id: string, work: () => Promise<T>): Promise<T> {
    const step = work();
    this.#firstSteps.set(id, step);
    try {
      return await step;
    } finally {
      this.#firstSteps.delete(id);
    }
  }

  /** Resolves when no first step of the conversation runs for its caller. */
  async firstStepOver(id: string): Promise<void> {
    await Promise.allSettled([this.#firstSteps.get(id)]);
  }

  /** Takes steps until nothing is left to do, or the conversation has to wait for its sandbox. */
  reconcile(id: string): Promise<Conversation | null> {
    return this.#runs.run(id);
  }

  /** Like {@link reconcile}, but first interrupts the step that runs now. */
  interrupt(id: string): Promise<Conversation | null> {
    return this.#runs.interrupt(id);
  }

  /** Like {@link reconcile}, but returns at once. A running turn checks its sandbox. */
  enqueue(id: string): void {
    if (this.#closed) return;
    this.#turns.get(id)?.check();
    this.reconcile(id).catch((error: unknown) => {
      this.#deps.logger.error({ conversation: id, error }, 'a conversation could not be reconciled');
    });
  }

  /** Enqueues the conversations whose agents wait with work that they began by themselves. Their records do not show it. */
  enqueueUnpromptedWork(): void {
    for (const id of this.#deps.agents.withUnpromptedWork()) this.enqueue(id);
  }

  /**
   * Asks the agent to stop the turn of the message, and writes this into the record, for a turn that continues later. If the turn does not
   * run here, its open permission request is withdrawn. If the message went back into the queue meanwhile, it is withdrawn.
   */
  async cancel(id: string, messageId: string, userId: string): Promise<void> {
    const runsHere = this.#turns.cancel(id, messageId, userId);
    await changeConversation(this.#deps, id, (conversation) => {
      const { turn, permission } = conversation;
      if (turn?.messageId !== messageId) return withdrawMessageChange(conversation, messageId, userId);
      if (turn.cancelled === true) return null;
      const withdrawn = runsHere ? null : permissionWithdrawal(permission);
      const to = { ...withdrawn?.to, turn: { ...turn, cancelled: true, cancelledBy: userId } };
      return { actor: 'user', reason: null, ...withdrawn, to };
    });
    this.enqueue(id);
  }

  /**
   * Ends all work. Starts, and turns of durable agents, continue in the next process. Waits for other turns up to the drain timeout, then
   * writes them as interrupted.
   */
  async close(): Promise<void> {
    this.#closed = true;
    this.#unsubscribe();
    await this.#turns.detach(this.#deps.drainTimeoutMs);
    await this.#runs.drain();
    await this.#deps.agents.close();
  }

  async #takeSteps(id: string, run: KeyedRun): Promise<Conversation | null> {
    await this.firstStepOver(id);
    for (;;) {
      run.resetSignals();
      const conversation = await this.#deps.store.conversations.find(id);
      if (conversation === null || conversation.removedAt !== null || this.#closed) return conversation;
      const continues = await this.#step(conversation, run.interrupted);
      if (!continues) return await this.#deps.store.conversations.find(id);
    }
  }

  async #step(conversation: Conversation, signal: AbortSignal): Promise<boolean> {
    if (conversation.deletedAt !== null) return await this.#end(conversation, 'removedAt', signal);
    if (conversation.archivedAt !== null) return isUnsettled(conversation) && (await this.#end(conversation, 'releasedAt', signal));
    if (startSteps[conversation.startStatus].length > 0) return await takeStartStep(this.#deps, conversation, signal);
    return conversation.startStatus === 'READY' && (await takeWorkStep(this.#deps, this.#turns, conversation, signal));
  }

  /**
   * Ends the agent of a deleted or archived conversation, and deletes its sandbox if no other conversation uses it. A sandbox that no
   * conversation started stays if the conversation was archived. The changes of an archived one are kept first. If that fails, its sandbox
   * stays.
   */
  async #end(conversation: Conversation, ended: 'removedAt' | 'releasedAt', signal: AbortSignal): Promise<boolean> {
    const { sandboxes, sandboxEnds, agents, conversationSandboxes, clock } = this.#deps;
    const { id, ownerId, sandboxId, endsSandbox } = conversation;
    // The turn was run by an earlier process.
    if (conversation.turn !== null) await interruptTurn(this.#deps, conversation);
    await agents.end(id, await conversationSandboxes.find(conversation));
    const reason = ended === 'releasedAt' ? await keepBeforeEnd(this.#deps, conversation, signal) : null;
    if (signal.aborted) return true;
    const stays = reason?.sandboxId !== undefined;
    const mayDelete = !stays && (endsSandbox || ended === 'removedAt');
    await sandboxEnds.runExclusive(sandboxId, async () => {
      const users = mayDelete ? await findIntactUsers(this.#deps, sandboxId) : null;
      const isUnused = users?.every((other) => other.id === id) === true;
      if (isUnused && (await conversationSandboxes.find(conversation)) !== null) {
        await sandboxes.delete(ownerId, sandboxId, { code: 'deleted_with_conversation' });
      }
      await changeConversation(this.#deps, id, ({ [ended]: endedAt, deletedAt, statusReason: before }) => {
        if (endedAt !== null || (ended === 'releasedAt' && deletedAt !== null)) return null;
        const statusReason = reason ?? (before?.code === 'keeping_changes' ? null : before);
        return { to: { statusReason, ...(!stays && { [ended]: clock.now() }) }, actor: 'skep', reason: null };
      });
    });
    return true;
  }
}
