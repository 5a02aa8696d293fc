import { startSteps } from '../../domain/conversation-start.ts';
import type { Conversation } from '../../domain/conversation.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ConversationStore } from '../../ports/conversation-store.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Random } from '../../ports/random.ts';
import type { RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import type { Agents } from '../agents/agents.ts';
import { KeyedWorker, type Run } from '../keyed-worker.ts';
import type { Microagents } from '../microagents/list-microagents.ts';
import type { Repositories } from '../repositories/locate-repository.ts';
import type { SandboxReconciler } from '../sandboxes/sandbox-reconciler.ts';
import { findSandbox } from '../sandboxes/find-sandbox.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { ConversationRecords } from './conversation-records.ts';
import { SandboxAccess } from './sandbox-access.ts';
import { ConversationStart, type ConversationTiming, defaultTiming } from './start-steps.ts';
import { Turns } from './turns/turns.ts';
import { ConversationWork } from './work-steps.ts';

export interface ConversationReconcilerDeps {
  readonly store: ConversationStore;
  readonly events: EventStore;
  readonly sandboxStore: SandboxStore;
  readonly sandboxes: Sandboxes;
  readonly sandboxReconciler: SandboxReconciler;
  readonly runtime: SandboxRuntime;
  readonly repositories: Repositories;
  readonly microagents: Microagents;
  readonly checkouts: RepositoryCheckouts;
  readonly agents: Agents;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly timing?: Partial<ConversationTiming>;
}

/**
 * Takes a conversation through its start, its turns and its end. Each step is written down before it is taken and decided
 * anew from what is written, so that a conversation goes on wherever an earlier process left it. A turn is run within the
 * drive of its conversation: one that is found written down at the beginning of a step runs nowhere.
 */
export class ConversationReconciler {
  readonly records: ConversationRecords;
  readonly #deps: ConversationReconcilerDeps;
  readonly #start: ConversationStart;
  readonly #turns: Turns;
  readonly #work: ConversationWork;
  readonly #runs: KeyedWorker<Conversation | null>;
  readonly #unsubscribe: () => void;
  #closed = false;

  constructor(deps: ConversationReconcilerDeps) {
    const timing = { ...defaultTiming, ...deps.timing };
    const records = new ConversationRecords(deps.store, deps.clock, deps.logger);
    const access = new SandboxAccess(deps);
    this.#deps = deps;
    this.records = records;
    this.#start = new ConversationStart({ ...deps, records, access, timing });
    this.#turns = new Turns({ ...deps, records, access, timing });
    this.#work = new ConversationWork({ ...deps, records, access, turns: this.#turns });
    this.#runs = new KeyedWorker((id, run) => this.#drive(id, run));
    this.#unsubscribe = deps.events.subscribe(({ sandboxIds }) => {
      for (const sandboxId of sandboxIds) for (const id of access.released(sandboxId)) this.enqueue(id);
    });
  }

  /** Drives the conversation until it rests or has to wait for its sandbox's runtime. */
  reconcile(id: string): Promise<Conversation | null> {
    return this.#runs.run(id);
  }

  /** The same, leaving off what is no longer wanted. */
  interrupt(id: string): Promise<Conversation | null> {
    this.#runs.interrupt(id);
    return this.reconcile(id);
  }

  /** Drives the conversation without anyone waiting for it. */
  enqueue(id: string): void {
    if (this.#closed) return;
    this.reconcile(id).catch((error: unknown) => {
      this.#deps.logger.error({ conversation: id, error }, 'conversation not settled');
    });
  }

  /** Asks the turn to leave off. One that nobody runs ends as interrupted. */
  cancel(id: string): void {
    this.#turns.cancel(id);
    this.enqueue(id);
  }

  /** Hands on what the owner chose, and what is written down already. */
  answered(id: string, permissionId: string, optionId: string): void {
    this.#turns.answered(id, permissionId, optionId);
  }

  /** Ends what is under way, agents included; starts go on in the next process, and turns are written down as interrupted. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#unsubscribe();
    await this.#runs.drain();
    await this.#deps.agents.close();
  }

  async #drive(id: string, run: Run): Promise<Conversation | null> {
    for (;;) {
      run.rearm();
      const conversation = await this.#deps.store.find(id);
      if (conversation === null || conversation.removedAt !== null || this.#closed) return conversation;
      const goesOn = await this.#step(conversation, run.interrupted);
      if (!goesOn) return await this.#deps.store.find(id);
    }
  }

  async #step(conversation: Conversation, signal: AbortSignal): Promise<boolean> {
    if (conversation.deletedAt !== null) return await this.#end(conversation);
    if (startSteps[conversation.startStatus].length > 0) return await this.#start.step(conversation, signal);
    return conversation.startStatus === 'READY' && (await this.#work.step(conversation, signal));
  }

  /** Ends a deleted conversation: its agent, and its sandbox too if no other conversation uses it. */
  async #end({ id, ownerId, sandboxId }: Conversation): Promise<boolean> {
    const { store, sandboxStore, sandboxes, agents, clock } = this.#deps;
    await agents.end(id);
    if ((await store.findUsing(sandboxId)).length === 0 && (await findSandbox(sandboxStore, ownerId, sandboxId)) !== null) {
      await sandboxes.delete(ownerId, sandboxId);
    }
    await this.records.change(id, ({ removedAt }) => (removedAt === null ? { to: { removedAt: clock.now() }, actor: 'skep', reason: null } : null));
    return true;
  }
}
