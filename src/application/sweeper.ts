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
  /** From the end of one sweep to the start of the next. */
  readonly sweepEveryMs: number;
  /** How long a sandbox of the runtime may have no record before it is removed. */
  readonly orphanGraceMs: number;
  /** How long deleted records are kept, so that a repeated deletion succeeds. */
  readonly rememberDeletedMs: number;
}

const pageSize = 500;

/**
 * Compares all sandboxes and conversations with their desired state: at the start, from time to time, and at once when the runtime
 * reports an event. It looks at the present state only, so a missed event does no harm.
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

  /** Begins with a sweep and resolves when it is done. A runtime that does not answer does not stop it. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#deps.runtime.subscribe((id) => this.#deps.sandboxReconciler.enqueueInstance(id));
    await this.#sweepRegularly();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer();
    this.#unsubscribe();
    await this.#sweeping;
  }

  /** Goes through everything once and enqueues what is due. Does not wait for that work. */
  async sweep(): Promise<void> {
    const { store, clock, rememberDeletedMs } = this.#deps;
    // The runtime comes first: a record is written before its sandbox starts, so what has no record now is an orphan.
    const observed = await this.#observe();
    const orphans = await this.#sweepSandboxes(observed);
    this.#deps.pool.enqueue();
    await this.#sweepConversations();
    await this.#sweepOrphans(orphans);
    const removedBefore = clock.now() - rememberDeletedMs;
    await store.conversations.purge(removedBefore);
    await store.sandboxes.purge(removedBefore);
  }

  async #sweepRegularly(): Promise<void> {
    this.#sweeping = this.sweep().catch((error: unknown) => {
      const fields = isFailure(error) ? { code: error.code, context: error.context } : { error };
      this.#deps.logger.warn(fields, 'a sweep failed; the next one tries again');
    });
    await this.#sweeping;
    if (this.#closed) return;
    this.#cancelTimer = this.#deps.clock.after(this.#deps.sweepEveryMs, () => void this.#sweepRegularly());
  }

  /** Returns what the runtime has, by instance; null if it does not answer. */
  async #observe(): Promise<ReadonlyMap<string, ObservedSandbox> | null> {
    try {
      return new Map((await this.#deps.runtime.list()).map((observed) => [observed.id, observed]));
    } catch (error) {
      if (!isFailure(error)) throw error;
      this.#deps.logger.warn({ code: error.code, context: error.context }, 'the runtime does not list its sandboxes');
      return null;
    }
  }

  /** Returns the sandboxes of the runtime that have no record. */
  async #sweepSandboxes(observed: ReadonlyMap<string, ObservedSandbox> | null): Promise<readonly ObservedSandbox[]> {
    const { store, sandboxReconciler, clock } = this.#deps;
    const orphans = new Map(observed ?? []);
    let after: string | null = null;
    do {
      const records = await store.sandboxes.scan(after, pageSize);
      for (const record of records) {
        const { id, instanceId } = record;
        orphans.delete(instanceId);
        const now = clock.now();
        const step =
          observed === null
            ? stepWithoutRuntime(record, now)
            : nextSandboxStep(record, observed.get(instanceId) ?? absentSandbox(instanceId), now);
        if (step.kind === 'none') sandboxReconciler.watch(record);
        else sandboxReconciler.enqueue(id);
      }
      after = records.length === pageSize ? (records.at(-1)?.id ?? null) : null;
    } while (after !== null && !this.#closed);
    return [...orphans.values()];
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
        logger.warn({ instance: id }, 'removed a sandbox without a record');
      } catch (error) {
        if (!isFailure(error)) throw error;
        logger.warn({ instance: id, code: error.code, context: error.context }, 'a sandbox without a record could not be removed');
      }
    }
  }

  async #sweepConversations(): Promise<void> {
    const { store, conversationReconciler } = this.#deps;
    let after: string | null = null;
    do {
      const records = await store.conversations.scanUnsettled(after, pageSize);
      for (const { id } of records) conversationReconciler.enqueue(id);
      after = records.length === pageSize ? (records.at(-1)?.id ?? null) : null;
    } while (after !== null && !this.#closed);
  }
}
