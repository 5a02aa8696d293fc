import { type AnyFailure, isFailure, logFieldsOf, reasonOfFailure } from '../../domain/failure.ts';
import { dueIdleAction, nextDueAt } from '../../domain/idle-policy.ts';
import { isSameReason } from '../../domain/reason.ts';
import { nextVersion, noteStillRunning } from '../../domain/sandbox-lifecycle.ts';
import { nextSandboxStep, stepWithoutInspect, type SandboxStep } from '../../domain/sandbox-next-step.ts';
import type { Sandbox, ObservedSandbox, SandboxStatus } from '../../domain/sandbox.ts';
import type { ReadinessProbe } from '../../ports/readiness-probe.ts';
import type { ChangeDeps } from '../conversations/conversation-work-tree.ts';
import { KeyedWorker, type KeyedRun } from '../keyed-worker.ts';
import { BackOff, KeyedTimers } from '../timers.ts';
import { isInUse } from './sandbox-records.ts';
import type { SandboxDeps } from './sandboxes.ts';
import { type DecidedStep, SandboxSteps } from './sandbox-steps.ts';
import type { StartQueue } from './start-queue.ts';

export interface SandboxReconcilerDeps extends SandboxDeps, ChangeDeps {
  readonly probe: ReadinessProbe;
  readonly startQueue: StartQueue;
}

/** Steps that act on the runtime. Each is taken at most once per run; if it is still due, it waits for the next run. */
const runtimeSteps: ReadonlySet<SandboxStep['kind']> = new Set(['launch', 'freeze', 'stop', 'resume', 'remove']);

/** Statuses in which no process of a sandbox may run. */
const restingStatuses: ReadonlySet<SandboxStatus> = new Set(['PAUSED', 'ERROR', 'MISSING']);

/** The sandbox after a run. `failure` is the last failure of the run, unless a later step succeeded on the runtime. */
export interface Reconciled {
  readonly sandbox: Sandbox | null;
  readonly failure: AnyFailure | null;
}

/**
 * Brings sandboxes to their desired state, step by step, until nothing is left to do. Only this class starts, pauses, resumes and removes
 * sandboxes with a record. Use cases write the desired state and call it; the sweeper calls it for the work that an earlier process
 * did not finish. Each step is decided anew from the record and the runtime's report, and every write is a compare-and-set, so a late
 * result has no effect.
 */
export class SandboxReconciler {
  readonly #deps: SandboxReconcilerDeps;
  readonly #runs: KeyedWorker<Reconciled>;
  readonly #timers: KeyedTimers;
  readonly #listeners = new Set<(reconciled: Reconciled) => void>();
  readonly #backOff: BackOff;
  readonly #closing = new AbortController();
  #watchedSince: number;

  constructor(deps: SandboxReconcilerDeps) {
    this.#deps = deps;
    this.#watchedSince = deps.clock.now();
    this.#backOff = new BackOff(deps.clock);
    this.#timers = new KeyedTimers(deps.clock, (id) => this.enqueue(id));
    this.#runs = new KeyedWorker((id, run, earlier) => this.#run(id, run, earlier?.failure ?? null));
  }

  /** Takes steps until nothing is left to do. Rejects only if the store fails. */
  reconcile(id: string): Promise<Reconciled> {
    return this.#runs.run(id);
  }

  /** Like {@link reconcile}, but interrupts the present step. */
  interrupt(id: string): Promise<Reconciled> {
    return this.#runs.interrupt(id);
  }

  /** Reconciles the sandbox in the background, because it may have changed. */
  enqueue(id: string): void {
    this.#runs.wake(id);
    void this.#runLogged({ sandbox: id }, () => this.reconcile(id));
  }

  /** Like {@link enqueue}, for a step that is due. A step that fails repeatedly is tried with back-off. */
  enqueueDue(id: string, step: SandboxStep['kind']): void {
    if (this.#backOff.waitMs(`${id} ${step}`) === 0) this.enqueue(id);
  }

  /** Like {@link enqueue}, with an id of the runtime. */
  enqueueInstance(instanceId: string): void {
    void this.#runLogged({ instance: instanceId }, async () => {
      const sandbox = await this.#deps.store.sandboxes.findByInstance(instanceId);
      if (sandbox !== null) this.enqueue(sandbox.id);
    });
  }

  /**
   * Returns when this server began to watch, in milliseconds since the epoch. If the machine's time is set back, what begins then must
   * count as begun in this server, so this is never after the present time.
   */
  watchedSince(): number {
    this.#watchedSince = Math.min(this.#watchedSince, this.#deps.clock.now());
    return this.#watchedSince;
  }

  /** Reconciles the sandbox when its next rule becomes due. */
  watch(sandbox: Sandbox): void {
    this.#timers.set(sandbox.id, nextDueAt(sandbox, this.watchedSince()));
  }

  /** Calls the listener after each run. Returns a function that removes the listener. */
  onReconciled(listener: (reconciled: Reconciled) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Ends every wait. The next process finds what is unfinished. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#timers.close();
    await this.#runs.drain();
  }

  async #runLogged(fields: Readonly<Record<string, string>>, work: () => Promise<Reconciled | void>): Promise<void> {
    const { logger } = this.#deps;
    try {
      const failure = (await work())?.failure ?? null;
      if (failure !== null) logger.warn({ ...fields, ...logFieldsOf(failure) }, 'a sandbox could not be reconciled');
    } catch (error) {
      logger.error({ ...fields, error }, 'a sandbox could not be reconciled');
    }
  }

  async #run(id: string, run: KeyedRun, earlier: AnyFailure | null): Promise<Reconciled> {
    using steps = new SandboxSteps(this.#deps, run, this.#closing.signal, () => this.watchedSince());
    const reconciled = await this.#takeSteps(id, run, steps, earlier);
    this.#timers.set(id, reconciled.sandbox === null ? null : nextDueAt(reconciled.sandbox, this.watchedSince()));
    if (reconciled.failure === null) for (const step of [...runtimeSteps, 'take-start-slot']) this.#backOff.succeeded(`${id} ${step}`);
    for (const listener of this.#listeners) listener(reconciled);
    return reconciled;
  }

  async #takeSteps(id: string, run: KeyedRun, steps: SandboxSteps, earlier: AnyFailure | null): Promise<Reconciled> {
    const { store } = this.#deps;
    let known: ObservedSandbox | null = null;
    let failure = earlier;
    const attempted = new Set<SandboxStep['kind']>();
    for (;;) {
      // The run was woken because something changed.
      if (run.woken.aborted) known = null;
      run.resetSignals();
      const sandbox = await store.sandboxes.find(id);
      if (sandbox === null || this.#closing.signal.aborted) return { sandbox, failure };
      const step = await this.#next(sandbox, known, attempted);
      if (isFailure(step)) return { sandbox, failure: step };
      if (step.kind === 'none' || attempted.has(step.kind)) return { sandbox, failure };
      if (runtimeSteps.has(step.kind)) attempted.add(step.kind);
      try {
        known = await steps.take(step, sandbox);
        if (runtimeSteps.has(step.kind)) failure = null;
      } catch (error) {
        if (run.interrupted.aborted) {
          known = null;
          continue;
        }
        if (!isFailure(error) || error.code === 'store_unavailable') throw error;
        this.#backOff.failed(`${id} ${step.kind}`);
        return { sandbox: await this.#noteFailure(await store.sandboxes.find(id), error, step.kind), failure: error };
      }
    }
  }

  /** Writes why a start is stuck, or why a sandbox at rest still runs, until the next try. Returns the record. */
  async #noteFailure(sandbox: Sandbox | null, failure: AnyFailure, step: SandboxStep['kind']): Promise<Sandbox | null> {
    const { store, clock } = this.#deps;
    if (sandbox === null || sandbox.deletedAt !== null) return sandbox;
    const reason = reasonOfFailure(failure);
    const isToRest = (step === 'stop' || step === 'freeze') && restingStatuses.has(sandbox.status);
    if (sandbox.status !== 'STARTING' && !isToRest) return sandbox;
    const noted = isToRest ? noteStillRunning(sandbox, reason, clock.now()) : nextVersion(sandbox, clock.now(), { statusReason: reason });
    if (isSameReason(sandbox.statusReason, noted.statusReason)) return sandbox;
    return (await store.sandboxes.replace(noted)).kind === 'replaced' ? noted : await store.sandboxes.find(sandbox.id);
  }

  async #next(
    sandbox: Sandbox,
    known: ObservedSandbox | null,
    attempted: ReadonlySet<SandboxStep['kind']>,
  ): Promise<DecidedStep | AnyFailure> {
    const { runtime, clock } = this.#deps;
    const canFreeze = runtime.capabilities.freeze;
    const uninspected = known === null ? stepWithoutInspect(sandbox, canFreeze) : null;
    if (uninspected !== null && !attempted.has(uninspected.kind)) return { ...uninspected, observed: null };
    const seemsIdle = sandbox.status === 'RUNNING' && dueIdleAction(sandbox, clock.now(), canFreeze) !== null;
    const inUse = seemsIdle && (await isInUse(this.#deps, sandbox));
    const inspected = known ?? (await runtime.inspect(sandbox.instanceId).catch(returnFailure));
    const observed = isFailure(inspected) ? null : inspected;
    const circumstances = { canFreeze, isInUse: inUse, rerun: attempted.has('resume'), watchedSince: this.watchedSince() };
    const step = nextSandboxStep(sandbox, observed, clock.now(), circumstances);
    return isFailure(inspected) && step.kind === 'none' ? inspected : { ...step, observed };
  }
}

function returnFailure(error: unknown): AnyFailure {
  if (isFailure(error)) return error;
  throw error;
}
