import { logFieldsOf } from '../domain/failure.ts';
import { nextSandboxStep } from '../domain/sandbox-next-step.ts';
import { absentSandbox, type ObservedSandbox, type Sandbox } from '../domain/sandbox.ts';
import type { CoreDeps } from './use-cases.ts';
import type { ConversationReconciler } from './conversations/conversation-reconciler.ts';
import type { ExecutionReconciler } from './executions/execution-reconciler.ts';
import type { Events } from './events/events.ts';
import type { DiskWatch } from './sandboxes/disk-watch.ts';
import type { IdleForecast } from './sandboxes/idle-forecast.ts';
import type { Quarantine } from './sandboxes/quarantine.ts';
import type { SandboxReconciler } from './sandboxes/sandbox-reconciler.ts';
import type { SandboxPool } from './sandboxes/sandbox-pool.ts';
import { purgeInBatches } from './purge-in-batches.ts';
import { scanRecords } from './scan-records.ts';
import { answerOrNull } from './timers.ts';

/** The defaults of the sweep. Deleted records are kept for a day. */
export const sweeperDefaults = { sweepEveryMs: 10_000, rememberDeletedMs: 24 * 3_600_000 };

export interface SweeperDeps extends CoreDeps {
  readonly sandboxReconciler: SandboxReconciler;
  readonly conversationReconciler: Pick<ConversationReconciler, 'enqueue' | 'enqueueUnpromptedWork'>;
  readonly executionReconciler: Pick<ExecutionReconciler, 'sweep'>;
  readonly pool: SandboxPool;
  readonly quarantine: Quarantine;
  readonly diskWatch: DiskWatch;
  readonly idleForecast: IdleForecast;
  readonly events: Pick<Events, 'purge'>;
  /** The time from the end of one sweep to the start of the next, in milliseconds. */
  readonly sweepEveryMs: number;
  /** How long deleted records are kept, so that a repeated deletion succeeds. */
  readonly rememberDeletedMs: number;
}

/** Compares all records with their desired state at intervals. Runtime events only make this faster, so a missed event does no harm. */
export class Sweeper {
  readonly #deps: SweeperDeps;
  #cancelTimer: () => void = () => {};
  #unsubscribe: () => void = () => {};
  #sweeping: Promise<void> | null = null;
  readonly #closing = new AbortController();

  constructor(deps: SweeperDeps) {
    this.#deps = deps;
  }

  /** Starts the sweeps. Resolves after the first one, also if the runtime does not answer. */
  start(): Promise<void> {
    this.#unsubscribe = this.#deps.runtime.subscribe((id) => this.#deps.sandboxReconciler.enqueueInstance(id));
    return this.#sweepRegularly();
  }

  /** Stops the sweeps. A running sweep ends first, without waiting for the runtime. After that, conversations can be closed. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelTimer();
    this.#unsubscribe();
    await this.#sweeping;
  }

  /** Checks all records once and enqueues those that are due. Does not wait for the enqueued work. */
  async sweep(): Promise<void> {
    const { store, conversationReconciler, executionReconciler, pool, quarantine, diskWatch, idleForecast, events, clock } = this.#deps;
    const { signal } = this.#closing;
    // The runtime is listed before the records. A record is written before its sandbox starts, so a sandbox without one is an orphan.
    const observed = await this.#observe();
    if (signal.aborted) return;
    if (observed !== null) await diskWatch.update(signal);
    const records: Sandbox[] = [];
    for await (const record of scanRecords((after, limit) => store.sandboxes.scan(after, limit), signal)) records.push(record);
    if (signal.aborted) return;
    idleForecast.note(records);
    await diskWatch.deleteUnderPressure(records);
    this.#enqueueDue(records, observed);
    const orphans = observed === null ? null : orphansAmong(observed, records);
    if (orphans !== null && !pool.isOpen) {
      await quarantine.quarantineStalePool(orphans);
      pool.open();
    }
    pool.enqueue();
    const unsettled = scanRecords((after, limit) => store.conversations.scanUnsettled(after, limit), signal);
    for await (const { id } of unsettled) conversationReconciler.enqueue(id);
    conversationReconciler.enqueueUnpromptedWork();
    await executionReconciler.sweep();
    if (orphans !== null) await quarantine.sweep(orphans, signal);
    const removedBefore = clock.now() - this.#deps.rememberDeletedMs;
    for (const records of [store.conversations, store.executions, store.sandboxes]) {
      await purgeInBatches(signal, () => records.purge(removedBefore));
    }
    await events.purge();
  }

  async #sweepRegularly(): Promise<void> {
    this.#sweeping = this.sweep().catch((error: unknown) => {
      this.#deps.logger.warn(logFieldsOf(error), 'a sweep failed; the next one tries again');
    });
    await this.#sweeping;
    if (this.#closing.signal.aborted) return;
    this.#cancelTimer = this.#deps.clock.after(this.#deps.sweepEveryMs, () => void this.#sweepRegularly());
  }

  /** Returns the sandboxes of the runtime by instance id. Null if the runtime does not answer. */
  async #observe(): Promise<ReadonlyMap<string, ObservedSandbox> | null> {
    const { runtime, logger } = this.#deps;
    const observed = await answerOrNull(runtime.list(), this.#closing.signal, logger, 'the runtime does not list its sandboxes');
    return observed === null ? null : new Map(observed.map((each) => [each.id, each]));
  }

  #enqueueDue(records: readonly Sandbox[], observed: ReadonlyMap<string, ObservedSandbox> | null): void {
    const { runtime, sandboxReconciler, clock, logger } = this.#deps;
    const watchedSince = sandboxReconciler.watchedSince();
    for (const record of records) {
      const found = observed === null ? null : (observed.get(record.instanceId) ?? absentSandbox(record.instanceId));
      try {
        const step = nextSandboxStep(record, found, clock.now(), { canFreeze: runtime.capabilities.freeze, watchedSince });
        if (step.kind === 'none') sandboxReconciler.watch(record);
        else sandboxReconciler.enqueueDue(record.id, step.kind);
      } catch (error) {
        // The store does not check the form of a record. One that is wrong must not stop the sweep of the others.
        logger.error({ sandbox: record.id, error }, 'a sweep left out a sandbox; its record may have a wrong form');
      }
    }
  }
}

/** Returns the sandboxes of the runtime that have no record. */
function orphansAmong(observed: ReadonlyMap<string, ObservedSandbox>, records: readonly Sandbox[]): readonly ObservedSandbox[] {
  const recorded = new Set(records.map(({ instanceId }) => instanceId));
  return [...observed.values()].filter(({ id }) => !recorded.has(id));
}
