import { isFailure } from '../domain/failure.ts';
import { nextSandboxStep, stepWithoutRuntime } from '../domain/sandbox-next-step.ts';
import { absentSandbox, type ObservedSandbox, type Sandbox } from '../domain/sandbox.ts';
import type { Clock } from '../ports/clock.ts';
import type { Logger } from '../ports/logger.ts';
import type { SandboxRuntime } from '../ports/sandbox-runtime.ts';
import type { Store } from '../ports/store.ts';
import type { ExecutionReconciler } from './executions/execution-reconciler.ts';
import type { Events } from './events/events.ts';
import type { DiskWatch } from './sandboxes/disk-watch.ts';
import type { IdleForecast } from './sandboxes/idle-forecast.ts';
import type { Quarantine } from './sandboxes/quarantine.ts';
import type { SandboxReconciler } from './sandboxes/sandbox-reconciler.ts';
import type { SandboxPool } from './sandboxes/sandbox-pool.ts';
import { unlessAborted } from './timers.ts';

/** The rules of the sweep, if nothing else is configured. A deleted record is kept for a day. */
export const sweeperDefaults = { sweepEveryMs: 10_000, rememberDeletedMs: 24 * 3_600_000 };

export interface SweeperDeps {
  readonly store: Store;
  readonly runtime: SandboxRuntime;
  readonly sandboxReconciler: SandboxReconciler;
  readonly conversationReconciler: { enqueue(id: string): void };
  readonly executionReconciler: Pick<ExecutionReconciler, 'sweep'>;
  readonly pool: SandboxPool;
  readonly quarantine: Quarantine;
  readonly disk: DiskWatch;
  readonly forecast: IdleForecast;
  readonly events: Pick<Events, 'purge'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From the end of one sweep to the start of the next. */
  readonly sweepEveryMs: number;
  /** How long deleted records are kept, so that a repeated deletion succeeds. */
  readonly rememberDeletedMs: number;
}

const pageSize = 500;

/** Compares everything with its desired state, from time to time and on events of the runtime. A missed event does no harm. */
export class Sweeper {
  readonly #deps: SweeperDeps;
  #cancelTimer: () => void = () => {};
  #unsubscribe: () => void = () => {};
  #sweeping: Promise<void> | null = null;
  readonly #closing = new AbortController();

  constructor(deps: SweeperDeps) {
    this.#deps = deps;
  }

  /** Begins with a sweep and resolves when it is done. A runtime that does not answer does not stop it. */
  start(): Promise<void> {
    this.#unsubscribe = this.#deps.runtime.subscribe((id) => this.#deps.sandboxReconciler.enqueueInstance(id));
    return this.#sweepRegularly();
  }

  /** A sweep that is under way ends. It does not wait for the runtime any more, so conversations can be closed. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelTimer();
    this.#unsubscribe();
    await this.#sweeping;
  }

  /** Goes through everything once and enqueues what is due. Does not wait for that work. */
  async sweep(): Promise<void> {
    const { store, executionReconciler, pool, quarantine, events, clock, rememberDeletedMs } = this.#deps;
    // The runtime comes first: a record is written before its sandbox starts, so what has no record now is an orphan.
    const observed = await this.#observe();
    if (this.#closing.signal.aborted) return;
    if (observed !== null) await this.#relieveDisk();
    const orphans = await this.#sweepSandboxes(observed);
    if (orphans !== null) await quarantine.checkPool(orphans);
    pool.enqueue();
    await this.#sweepConversations();
    await executionReconciler.sweep();
    if (orphans !== null) await quarantine.sweep(orphans, this.#closing.signal);
    const removedBefore = clock.now() - rememberDeletedMs;
    await store.conversations.purge(removedBefore);
    await store.executions.purge(removedBefore);
    await store.sandboxes.purge(removedBefore);
    await events.purge();
  }

  async #sweepRegularly(): Promise<void> {
    this.#sweeping = this.sweep().catch((error: unknown) => {
      const fields = isFailure(error) ? { code: error.code, context: error.context } : { error };
      this.#deps.logger.warn(fields, 'a sweep failed; the next one tries again');
    });
    await this.#sweeping;
    if (this.#closing.signal.aborted) return;
    this.#cancelTimer = this.#deps.clock.after(this.#deps.sweepEveryMs, () => void this.#sweepRegularly());
  }

  /** Returns what the runtime has, by instance; null if it does not answer. */
  async #observe(): Promise<ReadonlyMap<string, ObservedSandbox> | null> {
    try {
      const observed = await unlessAborted(this.#closing.signal, this.#deps.runtime.list());
      return new Map(observed.map((each) => [each.id, each]));
    } catch (error) {
      if (this.#closing.signal.aborted) return null;
      if (!isFailure(error)) throw error;
      this.#deps.logger.warn({ code: error.code, context: error.context }, 'the runtime does not list its sandboxes');
      return null;
    }
  }

  async #relieveDisk(): Promise<void> {
    const { store, disk } = this.#deps;
    await disk.look(this.#closing.signal);
    if (disk.pressure === null) return;
    const records: Sandbox[] = [];
    for await (const record of this.#all((after) => store.sandboxes.scan(after, pageSize))) records.push(record);
    await disk.relieve(records);
  }

  /** Returns the sandboxes of the runtime that have no record; null if it did not answer. */
  async #sweepSandboxes(observed: ReadonlyMap<string, ObservedSandbox> | null): Promise<readonly ObservedSandbox[] | null> {
    const { store, runtime, sandboxReconciler, forecast, clock } = this.#deps;
    const orphans = new Map(observed ?? []);
    forecast.beginSweep();
    for await (const record of this.#all((after) => store.sandboxes.scan(after, pageSize))) {
      const { id, instanceId } = record;
      orphans.delete(instanceId);
      forecast.note(record);
      const now = clock.now();
      const step =
        observed === null
          ? stepWithoutRuntime(record, now)
          : nextSandboxStep(record, observed.get(instanceId) ?? absentSandbox(instanceId), now, { canFreeze: runtime.capabilities.freeze });
      if (step.kind === 'none') sandboxReconciler.watch(record);
      else sandboxReconciler.enqueueDue(id, step.kind);
    }
    forecast.endSweep();
    return observed === null || this.#closing.signal.aborted ? null : [...orphans.values()];
  }

  async #sweepConversations(): Promise<void> {
    const { store, conversationReconciler } = this.#deps;
    const unsettled = this.#all((after) => store.conversations.scanUnsettled(after, pageSize));
    for await (const { id } of unsettled) conversationReconciler.enqueue(id);
  }

  async *#all<T extends { readonly id: string }>(scan: (after: string | null) => Promise<readonly T[]>): AsyncGenerator<T, void> {
    let after: string | null = null;
    do {
      const records = await scan(after);
      yield* records;
      after = records.length === pageSize ? (records.at(-1)?.id ?? null) : null;
    } while (after !== null && !this.#closing.signal.aborted);
  }
}
