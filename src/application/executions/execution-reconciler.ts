import {
  type ExecutionRecord, type ExecutionState, hasMoreOutput, isExecutionUnsettled, loseExecution, observeExecution, timeOutExecution,
} from '../../domain/execution.ts';
import { isFailure, isFailureOf, logFieldsOf } from '../../domain/failure.ts';
import { canonicalJson } from '../../domain/fingerprint.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { raceSignal } from '../../ports/abort-signals.ts';
import type { Clock } from '../../ports/clock.ts';
import type { CoreDeps } from '../use-cases.ts';
import { KeyedWorker, type KeyedRun } from '../keyed-worker.ts';
import { scanRecords } from '../scan-records.ts';
import { timeout } from '../timers.ts';

/** How long the start of a command may take. If the runtime does not have it then, it is lost. */
const beginWithinMs = 120_000;

/**
 * Records the end of executions, ends them at their deadline, and removes deleted ones from the runtime. Each step is decided anew from
 * the record, so a server continues where another stopped.
 */
export class ExecutionReconciler {
  readonly #deps: CoreDeps;
  readonly #runs: KeyedWorker<void>;
  readonly #closing = new AbortController();
  /** Fires when this process ends. */
  readonly closing: AbortSignal = this.#closing.signal;
  /** The executions whose end this process waits for. */
  readonly #awaited = new Set<string>();
  /** Listeners. Called after each run for an execution. */
  readonly #refreshListeners = new Set<(id: string) => void>();

  constructor(deps: CoreDeps) {
    this.#deps = deps;
    this.#runs = new KeyedWorker((id, run) => this.#run(id, run));
  }

  /** Reconciles the execution in the background, because its record was written. */
  enqueue(id: string): void {
    this.#runs.wake(id);
    void this.#runs.run(id);
  }

  /** Removes a deleted execution from its sandbox. Resolves after the attempt, also if it failed. Never rejects. */
  async remove(id: string): Promise<void> {
    await this.#runs.interrupt(id);
  }

  /** Reconciles every execution that is unsettled. Does not wait for the runtime. */
  async sweep(): Promise<void> {
    const { store, clock } = this.#deps;
    for await (const execution of scanRecords((after, limit) => store.executions.scanUnsettled(after, limit), this.closing)) {
      if (!this.#awaited.has(execution.id) || isDue(execution, clock.now())) this.enqueue(execution.id);
    }
  }

  /**
   * Gets the execution's state from the runtime, writes it, and returns the record. `mayStart` is false if its start is over. Throws the
   * failures of the runtime.
   */
  async refresh(execution: ExecutionRecord, { instanceId }: Sandbox, mayStart = true): Promise<ExecutionRecord> {
    if (execution.status !== 'running') return execution;
    try {
      return await this.recordState(execution, await this.#deps.runtime.executions.state(instanceId, execution.id));
    } catch (error) {
      if (!isGone(error)) throw error;
      return await this.#markLost(execution, mayStart);
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
      const execution = await this.#deps.store.executions.find(id);
      if (execution === null || execution.status !== 'running' || execution.deletedAt !== null) return execution;
      await raceSignal(onRefresh.promise, signal);
      onRefresh = Promise.withResolvers();
    }
  }

  /** Writes what the runtime reports of the execution, and returns the record. New output counts as activity of the sandbox. */
  async recordState(execution: ExecutionRecord, state: ExecutionState): Promise<ExecutionRecord> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    if (hasMoreOutput(observeExecution(execution, state, now), execution)) await store.sandboxes.touch(execution.sandboxId, now);
    return await this.#write(execution, (latest) => observeExecution(latest, state, now));
  }

  /**
   * Returns true if an execution keeps the sandbox awake: it has a time limit and runs, it starts, or it has new output since its record
   * was last written. That counts as activity of the sandbox. Also returns true if the runtime fails, but not if the sandbox itself can't
   * report on an execution: it could stay awake for ever.
   */
  async keepsAwake(sandbox: Sandbox): Promise<boolean> {
    const { store, clock } = this.#deps;
    let isActive = false;
    try {
      for (const execution of await store.executions.running(sandbox.id)) {
        if (execution.deadline !== null || !execution.begun) isActive ||= !isDue(execution, clock.now());
        else {
          const seen = await this.refresh(execution, sandbox).catch((error: unknown) => {
            if (isFailureOf(error, 'runtime_unavailable') && error.context.runtime === 'sandbox') return execution;
            throw error;
          });
          isActive ||= hasMoreOutput(seen, execution);
        }
      }
    } catch (error) {
      if (!isFailure(error) || error.code === 'store_unavailable') throw error;
      return true;
    }
    if (isActive) await store.sandboxes.touch(sandbox.id, clock.now());
    return isActive;
  }

  /** Ends every wait. Executions continue. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('Skep ends'));
    await this.#runs.drain();
  }

  async #run(id: string, run: KeyedRun): Promise<void> {
    using ends = new DisposableStack();
    let timeUp: AbortSignal | null = null;
    try {
      while (!this.closing.aborted) {
        run.resetSignals();
        const execution = await this.#deps.store.executions.find(id);
        if (execution === null || !isExecutionUnsettled(execution)) return;
        // Only the first look reads the time of the machine, which may jump.
        timeUp ??= ends.use(timeLimit(this.#deps.clock, execution)).signal;
        if (!(await this.#step(execution, timeUp, run))) return;
      }
    } catch (error) {
      this.#deps.logger.warn({ execution: id, ...logFieldsOf(error) }, 'an execution could not be reconciled; the next sweep tries again');
    } finally {
      for (const note of this.#refreshListeners) note(id);
    }
  }

  /** Returns false if there is nothing to do before the next sweep. */
  async #step(execution: ExecutionRecord, timeUp: AbortSignal, run: KeyedRun): Promise<boolean> {
    const { store, runtime, clock } = this.#deps;
    const { id } = execution;
    const sandbox = await store.sandboxes.find(execution.sandboxId);
    if (sandbox === null || sandbox.deletedAt !== null) {
      await this.#write(execution, (latest) => {
        const now = clock.now();
        return latest.deletedAt === null ? loseExecution(latest, { code: 'sandbox_deleted' }, now) : { ...latest, removedAt: now };
      });
    } else if (execution.deletedAt !== null) {
      await runtime.executions.remove(sandbox.instanceId, id).catch((error: unknown) => {
        if (!isGone(error)) throw error;
      });
      await this.#write(execution, (latest) => ({ ...latest, removedAt: clock.now() }));
    } else {
      // The process that started it may have ended, or lost the runtime's response, before it wrote that the command began.
      const known = execution.begun ? execution : await this.refresh(execution, sandbox);
      if (known.status !== 'running') return true;
      if (timeUp.aborted || hasTimedOut(known)) await this.#end(known, sandbox);
      return await this.#awaitEnd(known, sandbox, timeUp, run);
    }
    return true;
  }

  /** Kills a command whose time is over. In a frozen sandbox it ends only after the sandbox is resumed. */
  async #end(execution: ExecutionRecord, { instanceId }: Sandbox): Promise<void> {
    if (!hasTimedOut(execution)) await this.#write(execution, timeOutExecution);
    try {
      await this.#deps.runtime.executions.signal(instanceId, execution.id, 'SIGKILL');
    } catch (error) {
      if (!isFailureOf(error, 'sandbox_not_running') && !isGone(error)) throw error;
    }
  }

  /** Waits until the execution ends, its time is over, or the run is woken. Returns false if the runtime does not have it yet. */
  async #awaitEnd(execution: ExecutionRecord, { instanceId }: Sandbox, timeUp: AbortSignal, run: KeyedRun): Promise<boolean> {
    const { runtime } = this.#deps;
    const { id } = execution;
    const signal = AbortSignal.any([run.woken, run.interrupted, this.closing, ...(timeUp.aborted ? [] : [timeUp])]);
    this.#awaited.add(id);
    try {
      await this.recordState(execution, await runtime.executions.ended(instanceId, id, signal));
    } catch (error) {
      if (signal.aborted) return true;
      if (!isGone(error)) throw error;
      return (await this.#markLost(execution)).status !== 'running';
    } finally {
      this.#awaited.delete(id);
    }
    return true;
  }

  /** Records the execution as lost, unless it may still start. */
  async #markLost(execution: ExecutionRecord, mayStart = true): Promise<ExecutionRecord> {
    const now = this.#deps.clock.now();
    if (mayStart && !execution.begun && now - execution.startedAt < beginWithinMs) return execution;
    return await this.#write(execution, (latest) =>
      loseExecution(latest, { code: latest.begun ? 'execution_vanished' : 'execution_not_started' }, now));
  }

  /** Applies the change to the latest record, and returns the stored one. If the record is gone, returns the last known one. */
  async #write(execution: ExecutionRecord, change: (latest: ExecutionRecord) => ExecutionRecord): Promise<ExecutionRecord> {
    for (let latest = execution; ; ) {
      const changed = change(latest);
      if (canonicalJson(changed) === canonicalJson(latest)) return latest;
      const next = { ...changed, version: latest.version + 1 };
      if ((await this.#deps.store.executions.replace(next)).kind === 'replaced') return next;
      const stored = await this.#deps.store.executions.find(execution.id);
      if (stored === null) return latest;
      latest = stored;
    }
  }

  /** Marks the record deleted. {@link remove} or a later sweep removes the execution from the sandbox. */
  async delete(execution: ExecutionRecord): Promise<void> {
    const now = this.#deps.clock.now();
    await this.#write(execution, (latest) => (latest.deletedAt === null ? { ...latest, deletedAt: now } : latest));
  }
}

/** Returns a signal that fires when the time of the execution is over. It has fired if that is so already. */
function timeLimit(clock: Clock, { deadline }: ExecutionRecord): ReturnType<typeof timeout> {
  const leftMs = deadline === null ? Number.MAX_SAFE_INTEGER : deadline - clock.now();
  return leftMs > 0 ? timeout(clock, leftMs) : { signal: AbortSignal.abort(), [Symbol.dispose]() {} };
}

/** Returns true if its time was over when somebody last looked. */
function hasTimedOut({ statusReason }: ExecutionRecord): boolean {
  return statusReason?.code === 'execution_timed_out';
}

/** Returns true if its time is over, or if nobody has seen it begin in time. */
function isDue(execution: ExecutionRecord, now: number): boolean {
  return hasTimedOut(execution) || (!execution.begun && now - execution.startedAt >= beginWithinMs);
}

/** Returns true if the runtime does not have the execution or its sandbox. */
function isGone(error: unknown): boolean {
  return isFailureOf(error, 'execution_not_found', 'sandbox_not_found');
}
