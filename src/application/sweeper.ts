import { isFailure } from '../domain/failure.ts';
import { nextSandboxStep, stepWithoutRuntime } from '../domain/sandbox-next-step.ts';
import { absentSandbox, type ObservedSandbox } from '../domain/sandbox.ts';
import type { Clock } from '../ports/clock.ts';
import type { Logger } from '../ports/logger.ts';
import type { SandboxRuntime } from '../ports/sandbox-runtime.ts';
import type { Store } from '../ports/store.ts';
import type { SandboxReconciler } from './sandboxes/sandbox-reconciler.ts';
import type { SandboxPool } from './sandboxes/sandbox-pool.ts';

/** The rules of the sweep, if nothing else is configured. A deleted record is kept for a day. */
export const sweeperDefaults = { sweepEveryMs: 10_000, orphanGraceMs: 10_000, rememberDeletedMs: 24 * 3_600_000 };

export interface SweeperDeps {
  readonly store: Store;
  readonly runtime: SandboxRuntime;
  readonly sandboxReconciler: SandboxReconciler;
  readonly conversationReconciler: { enqueue(id: string): void };
  readonly pool: SandboxPool;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From the end of one sweep to the beginning of the next. */
  readonly sweepEveryMs: number;
  /** How long what no record owns is left alone. */
  readonly orphanGraceMs: number;
  /** How long a deleted record is remembered, so that deleting it again is still a success. */
  readonly rememberDeletedMs: number;
}

const scanSize = 500;

/**
 * Brings records and facts together, for all sandboxes and conversations: at start, now and then, and at once where the
 * runtime tells of an event. Level-triggered: it looks at what is, never at what it was told.
 */
export class Sweeper {
  readonly #deps: SweeperDeps;
  readonly #orphansSince = new Map<string, number>();
  #cancelTimer: () => void = () => {};
  #unsubscribe: () => void = () => {};
  #sweeping: Promise<void> | null = null;
  #closed = false;

  constructor(deps: SweeperDeps) {
    this.#deps = deps;
  }

  /** Begins with a sweep; answers when that is done. A runtime that does not answer does not keep it from going on. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#deps.runtime.subscribe((id) => this.#deps.sandboxReconciler.enqueueInstance(id));
    await this.#sweepAndGoOn();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer();
    this.#unsubscribe();
    await this.#sweeping;
  }

  /** Goes once through everything, and sets in motion what is due; does not wait for that. */
  async sweep(): Promise<void> {
    const { store, clock, rememberDeletedMs } = this.#deps;
    // The facts first: whatever runs was written down before it was started, so that a fact without a record is an orphan.
    const facts = await this.#facts();
    const orphans = await this.#sweepSandboxes(facts);
    this.#deps.pool.enqueue();
    await this.#sweepConversations();
    await this.#sweepOrphans(orphans);
    const removedBefore = clock.now() - rememberDeletedMs;
    await store.conversations.purge(removedBefore);
    await store.sandboxes.purge(removedBefore);
  }

  async #sweepAndGoOn(): Promise<void> {
    this.#sweeping = this.sweep().catch((error: unknown) => {
      const fields = isFailure(error) ? { code: error.code, reason: error.message } : { error };
      this.#deps.logger.warn(fields, 'sweep failed; the next one tries again');
    });
    await this.#sweeping;
    if (this.#closed) return;
    this.#cancelTimer = this.#deps.clock.after(this.#deps.sweepEveryMs, () => void this.#sweepAndGoOn());
  }

  /** What the runtime has, by instance; null where it does not answer. */
  async #facts(): Promise<ReadonlyMap<string, ObservedSandbox> | null> {
    try {
      return new Map((await this.#deps.runtime.list()).map((fact) => [fact.id, fact]));
    } catch (error) {
      if (!isFailure(error)) throw error;
      this.#deps.logger.warn({ code: error.code, reason: error.message }, 'the runtime does not tell what it has');
      return null;
    }
  }

  /** Answers with the facts that no record was found for. */
  async #sweepSandboxes(facts: ReadonlyMap<string, ObservedSandbox> | null): Promise<readonly ObservedSandbox[]> {
    const { store, sandboxReconciler, clock } = this.#deps;
    const ownerless = new Map(facts ?? []);
    let after: string | null = null;
    do {
      const records = await store.sandboxes.scan(after, scanSize);
      for (const record of records) {
        const { id, instanceId } = record;
        ownerless.delete(instanceId);
        const now = clock.now();
        const step = facts === null ? stepWithoutRuntime(record, now) : nextSandboxStep(record, facts.get(instanceId) ?? absentSandbox(instanceId), now);
        if (step.kind === 'none') sandboxReconciler.watch(record);
        else sandboxReconciler.enqueue(id);
      }
      after = records.length === scanSize ? (records.at(-1)?.id ?? null) : null;
    } while (after !== null && !this.#closed);
    return [...ownerless.values()];
  }

  async #sweepOrphans(orphans: readonly ObservedSandbox[]): Promise<void> {
    const { store, runtime, clock, logger, orphanGraceMs } = this.#deps;
    const seen = new Set(orphans.map(({ id }) => id));
    for (const id of this.#orphansSince.keys()) if (!seen.has(id)) this.#orphansSince.delete(id);
    for (const id of seen) {
      const since = this.#orphansSince.get(id) ?? clock.now();
      this.#orphansSince.set(id, since);
      if (this.#closed || clock.now() - since < orphanGraceMs) continue;
      const record = await store.sandboxes.findByInstance(id);
      if (record !== null && record.removedAt === null) continue;
      try {
        await runtime.remove(id);
        this.#orphansSince.delete(id);
        logger.warn({ instance: id }, 'removed a sandbox that no record owns');
      } catch (error) {
        if (!isFailure(error)) throw error;
        logger.warn({ instance: id, code: error.code, reason: error.message }, 'a sandbox that no record owns is there still');
      }
    }
  }

  async #sweepConversations(): Promise<void> {
    const { store, conversationReconciler } = this.#deps;
    let after: string | null = null;
    do {
      const records = await store.conversations.scanUnsettled(after, scanSize);
      for (const { id } of records) conversationReconciler.enqueue(id);
      after = records.length === scanSize ? (records.at(-1)?.id ?? null) : null;
    } while (after !== null && !this.#closed);
  }
}
