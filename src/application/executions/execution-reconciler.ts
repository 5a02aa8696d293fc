import {
  type ExecutionRecord, isExecutionUnsettled, loseExecution, markExecutionDeleted, markExecutionRemoved, observeExecution, timeOutExecution,
} from '../../domain/execution.ts';
import { isFailure, isFailureOf } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/logger.ts';
import type { ExecutionState } from '../../ports/sandbox-executions.ts';
import { KeyedWorker, type Run } from '../keyed-worker.ts';
import { timeout, unlessAborted } from '../timers.ts';
import type { ExecutionRecordsDeps } from './execution-records.ts';

export interface ExecutionReconcilerDeps extends ExecutionRecordsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How long the start of a command may take. One that the runtime does not have after that is lost. */
const startWithinMs = 120_000;

const pageSize = 500;

/**
 * Writes how executions end, ends those whose time is over, and removes what is left of deleted ones. Each step is decided from the record
 * again, so a server goes on where another stopped.
 */
export class ExecutionReconciler {
  readonly #deps: ExecutionReconcilerDeps;
  readonly #runs: KeyedWorker<void>;
  readonly #closing = new AbortController();
  /** The executions whose end this process waits for. */
  readonly #awaited = new Set<string>();
  /** Called after each look at an execution. */
  readonly #refreshListeners = new Set<(id: string) => void>();

  constructor(deps: ExecutionReconcilerDeps) {
    this.#deps = deps;
    this.#runs = new KeyedWorker((id, run) => this.#run(id, run));
  }

  /** Fires when this process ends. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Reconciles the execution, because its record was written. Nobody waits. */
  enqueue(id: string): void {
    this.#runs.wake(id);
    void this.#runs.run(id);
  }

  /** Removes a deleted execution from its sandbox. Resolves when that is done, or was tried. Never rejects. */
  async remove(id: string): Promise<void> {
    this.#runs.interrupt(id);
    await this.#runs.run(id);
  }

  /** Reconciles every execution that is unsettled. Does not wait for the runtime. */
  async sweep(): Promise<void> {
    const { store, clock } = this.#deps;
    let after: string | null = null;
    do {
      const records: readonly ExecutionRecord[] = await store.scanUnsettled(after, pageSize);
      for (const record of records) if (!this.#awaited.has(record.id) || isDue(record, clock.now())) this.enqueue(record.id);
      after = records.length === pageSize ? (records.at(-1)?.id ?? null) : null;
    } while (after !== null && !this.closing.aborted);
  }

  /** Asks the runtime for the state of the execution, and returns the record with it, written. Throws the failures of the runtime. */
  async refresh(execution: ExecutionRecord, { instanceId }: Sandbox): Promise<ExecutionRecord> {
    if (execution.status !== 'running') return execution;
    try {
      return await this.recordState(execution, await this.#deps.executions.state(instanceId, execution.id));
    } catch (error) {
      if (!isGone(error)) throw error;
      return await this.#markLost(execution);
    }
  }

  /** Resolves with the record once the execution has ended or is deleted; null if there is none. Rejects with the signal's reason. */
  async ended(id: string, signal: AbortSignal): Promise<ExecutionRecord | null> {
    let onRefresh = Promise.withResolvers<void>();
    const note = (refreshedId: string): void => void (refreshedId === id && onRefresh.resolve());
    using ends = new DisposableStack();
    ends.defer(() => this.#refreshListeners.delete(note));
    this.#refreshListeners.add(note);
    this.enqueue(id);
    for (;;) {
      const execution = await this.#deps.store.find(id);
      if (execution === null || execution.status !== 'running' || execution.deletedAt !== null) return execution;
      await unlessAborted(signal, onRefresh.promise);
      onRefresh = Promise.withResolvers();
    }
  }

  /** Writes what the runtime reports of the execution, and returns the record. */
  async recordState(execution: ExecutionRecord, state: ExecutionState): Promise<ExecutionRecord> {
    return await this.#write(execution, (latest) => observeExecution(latest, state, this.#deps.clock.now()));
  }

  /**
   * Returns true if an execution keeps the sandbox from being idle: one with a time limit runs, or one has written something since this was
   * asked last. That counts as activity of the sandbox. Returns true also if the runtime does not say.
   */
  async keepsAwake(sandbox: Sandbox): Promise<boolean> {
    const { store, sandboxes, clock } = this.#deps;
    let isActive = false;
    try {
      for (const execution of await store.running(sandbox.id)) {
        if (execution.deadline !== null || !execution.begun) isActive ||= !isDue(execution, clock.now());
        else {
          const seen = await this.refresh(execution, sandbox);
          isActive ||= seen.stdoutBytes > execution.stdoutBytes || seen.stderrBytes > execution.stderrBytes;
        }
      }
    } catch (error) {
      if (!isFailure(error) || error.code === 'store_unavailable') throw error;
      return true;
    }
    if (isActive) await sandboxes.touch(sandbox.id, clock.now());
    return isActive;
  }

  /** Ends every wait. Executions go on. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('Skep ends'));
    await this.#runs.drain();
  }

  async #run(id: string, run: Run): Promise<void> {
    try {
      while (!this.closing.aborted) {
        run.resetSignals();
        const execution = await this.#deps.store.find(id);
        if (execution === null || !isExecutionUnsettled(execution) || !(await this.#step(execution, run))) return;
      }
    } catch (error) {
      const fields = isFailure(error) ? { code: error.code, context: error.context } : { error };
      this.#deps.logger.warn({ execution: id, ...fields }, 'an execution could not be reconciled; the next sweep tries again');
    } finally {
      for (const note of this.#refreshListeners) note(id);
    }
  }

  /** Returns false if there is nothing to do before the next sweep. */
  async #step(execution: ExecutionRecord, run: Run): Promise<boolean> {
    const { sandboxes, executions, clock } = this.#deps;
    const { id } = execution;
    const sandbox = await sandboxes.find(execution.sandboxId);
    if (sandbox === null || sandbox.deletedAt !== null) {
      await this.#write(execution, (latest) => {
        const now = clock.now();
        return latest.deletedAt === null ? loseExecution(latest, { code: 'sandbox_deleted' }, now) : markExecutionRemoved(latest, now);
      });
    } else if (execution.deletedAt !== null) {
      await executions.remove(sandbox.instanceId, id).catch(ignoreGone);
      await this.#write(execution, (latest) => markExecutionRemoved(latest, clock.now()));
    } else {
      if (isDue(execution, clock.now())) await this.#end(execution, sandbox);
      return await this.#awaitEnd(execution, sandbox, run);
    }
    return true;
  }

  /** Ends a command whose time is over. In a frozen sandbox, it ends when the sandbox runs again. */
  async #end(execution: ExecutionRecord, { instanceId }: Sandbox): Promise<void> {
    if (execution.statusReason?.code !== 'execution_timed_out') {
      await this.#write(execution, (latest) => (latest.status === 'running' ? timeOutExecution(latest) : latest));
    }
    try {
      await this.#deps.executions.signal(instanceId, execution.id, 'SIGKILL');
    } catch (error) {
      if (!isFailureOf(error, 'sandbox_not_running') && !isGone(error)) throw error;
    }
  }

  /** Waits until it has ended, its time is over, or its record was written. Returns false if the runtime does not have it yet. */
  async #awaitEnd(execution: ExecutionRecord, { instanceId }: Sandbox, run: Run): Promise<boolean> {
    const { executions, clock } = this.#deps;
    const { id, deadline } = execution;
    const leftMs = deadline === null || isDue(execution, clock.now()) ? Number.MAX_SAFE_INTEGER : deadline - clock.now();
    using timeUp = timeout(clock, leftMs);
    const signal = AbortSignal.any([run.woken, run.interrupted, this.closing, timeUp.signal]);
    this.#awaited.add(id);
    try {
      await this.recordState(execution, await executions.ended(instanceId, id, signal));
    } catch (error) {
      if (signal.aborted) return true;
      if (!isGone(error)) throw error;
      return (await this.#markLost(execution)).status !== 'running';
    } finally {
      this.#awaited.delete(id);
    }
    return true;
  }

  /** Writes that the runtime does not have it, unless it may be about to start. */
  async #markLost(execution: ExecutionRecord): Promise<ExecutionRecord> {
    const now = this.#deps.clock.now();
    if (!execution.begun && now - execution.startedAt < startWithinMs) return execution;
    return await this.#write(execution, (latest) => {
      if (latest.status !== 'running') return latest;
      return loseExecution(latest, { code: latest.begun ? 'execution_vanished' : 'execution_not_started' }, now);
    });
  }

  /** Writes the change of the latest record, and returns what is stored. A record that is gone stays as it was given. */
  async #write(execution: ExecutionRecord, change: (latest: ExecutionRecord) => ExecutionRecord): Promise<ExecutionRecord> {
    for (let latest = execution; ; ) {
      const changed = change(latest);
      if (changed.version === latest.version || isSame(changed, latest)) return latest;
      if ((await this.#deps.store.replace(changed)).kind === 'replaced') return changed;
      const stored = await this.#deps.store.find(execution.id);
      if (stored === null) return latest;
      latest = stored;
    }
  }

  /** Deletes the record. What is left in the sandbox is removed by {@link remove}, or later. */
  async delete(execution: ExecutionRecord): Promise<void> {
    const now = this.#deps.clock.now();
    await this.#write(execution, (latest) => (latest.deletedAt === null ? markExecutionDeleted(latest, now) : latest));
  }
}

function isDue({ deadline, begun, startedAt }: ExecutionRecord, now: number): boolean {
  return (deadline !== null && now >= deadline) || (!begun && now - startedAt >= startWithinMs);
}

/** Returns true if the runtime has nothing of the execution. */
function isGone(error: unknown): boolean {
  return isFailureOf(error, 'execution_not_found') || isFailureOf(error, 'sandbox_not_found');
}

/** Throws the error, unless it says that the runtime has nothing. */
function ignoreGone(error: unknown): void {
  if (!isGone(error)) throw error;
}

/** Returns true if nothing but the version differs. */
function isSame(a: ExecutionRecord, b: ExecutionRecord): boolean {
  return JSON.stringify({ ...a, version: 0 }) === JSON.stringify({ ...b, version: 0 });
}
