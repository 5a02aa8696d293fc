import { type AnyFailure, isFailure } from '../../domain/failure.ts';
import { nextDueAt } from '../../domain/idle-policy.ts';
import { nextSandboxStep, stepWithoutRuntime, stepWithoutInspect, type SandboxStep } from '../../domain/sandbox-next-step.ts';
import type { Sandbox, ObservedSandbox } from '../../domain/sandbox.ts';
import { KeyedWorker, type Run } from '../keyed-worker.ts';
import { KeyedTimers } from '../timers.ts';
import { type DecidedStep, releaseStartSlot, type SandboxReconcilerDeps, type StepContext } from './step-context.ts';
import { acts, needsStartSlot, takeStep } from './sandbox-steps.ts';

export type { SandboxReconcilerDeps } from './step-context.ts';

/** Where a sandbox came to rest, and what kept it from where it was to go. */
export interface Reconciled {
  readonly sandbox: Sandbox | null;
  readonly failure: AnyFailure | null;
}

/**
 * Brings what is written of a sandbox and what the runtime has of it together, step by step, until there is nothing
 * left to do. It is the only place that acts on the runtime: use cases write an intent and let it drive; the
 * reconciler lets it drive whatever an earlier process left half-done. Level-triggered: each step is decided anew from
 * the record and the fact, and every write is a compare-and-set, so that several processes may drive one sandbox.
 */
export class SandboxReconciler {
  readonly #deps: SandboxReconcilerDeps;
  readonly #runs: KeyedWorker<Reconciled>;
  readonly #alarms: KeyedTimers;
  readonly #listeners = new Set<{ readonly call: (settled: Reconciled) => void }>();
  readonly #closing = new AbortController();

  constructor(deps: SandboxReconcilerDeps) {
    this.#deps = deps;
    this.#alarms = new KeyedTimers(deps.clock, (id) => this.enqueue(id));
    this.#runs = new KeyedWorker((id, run, earlier) => this.#drive(id, run, earlier?.failure ?? null));
  }

  /** Drives the sandbox until it rests. Rejects only where the store fails. */
  reconcile(id: string): Promise<Reconciled> {
    return this.#runs.run(id);
  }

  /** Drives the sandbox until it rests, leaving off what is no longer wanted. */
  interrupt(id: string): Promise<Reconciled> {
    this.#runs.interrupt(id);
    return this.reconcile(id);
  }

  /** Something may have happened to the sandbox: drives it without anyone waiting. */
  enqueue(id: string): void {
    this.#runs.wake(id);
    void this.#logged({ sandbox: id }, () => this.reconcile(id));
  }

  /** The runtime tells that something may have happened to what it knows by this id. */
  enqueueInstance(instanceId: string): void {
    void this.#logged({ instance: instanceId }, async () => {
      const sandbox = await this.#deps.store.findByInstance(instanceId);
      if (sandbox !== null) this.enqueue(sandbox.id);
    });
  }

  /** Drives the sandbox when something becomes due for it by itself. */
  watch(sandbox: Sandbox): void {
    this.#alarms.set(sandbox.id, nextDueAt(sandbox));
  }

  /** Calls the listener with where each sandbox that was driven came to rest. Answers with the function that ends it. */
  onReconciled(call: (settled: Reconciled) => void): () => void {
    const listener = { call };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Ends every wait; what was under way is found again by the next process. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#alarms.close();
    await this.#runs.drain();
  }

  async #logged(fields: Readonly<Record<string, string>>, work: () => Promise<Reconciled | void>): Promise<void> {
    const { logger } = this.#deps;
    try {
      const failure = (await work())?.failure ?? null;
      if (failure !== null) logger.warn({ ...fields, code: failure.code, reason: failure.message }, 'sandbox not settled');
    } catch (error) {
      logger.error({ ...fields, error }, 'sandbox not settled');
    }
  }

  async #drive(id: string, run: Run, earlier: AnyFailure | null): Promise<Reconciled> {
    const context: StepContext = { deps: this.#deps, run, closing: this.#closing.signal, startSlot: null };
    try {
      const settled = await this.#untilRest(id, context, earlier);
      this.#alarms.set(id, settled.sandbox === null ? null : nextDueAt(settled.sandbox));
      for (const { call } of this.#listeners) call(settled);
      return settled;
    } finally {
      releaseStartSlot(context);
    }
  }

  async #untilRest(id: string, context: StepContext, earlier: AnyFailure | null): Promise<Reconciled> {
    const { store } = this.#deps;
    let known: ObservedSandbox | null = null;
    const attempted = new Set<SandboxStep['kind']>();
    for (;;) {
      // Whoever woke the run knows of something that came after what is known here.
      if (context.run.woken.aborted) known = null;
      context.run.rearm();
      const sandbox = await store.find(id);
      if (sandbox === null || this.#closing.signal.aborted) return { sandbox, failure: earlier };
      const step = await this.#next(sandbox, known, attempted);
      if (isFailure(step)) return { sandbox, failure: step };
      if (step.kind === 'none' || attempted.has(step.kind)) return { sandbox, failure: earlier };
      if (acts.has(step.kind)) attempted.add(step.kind);
      if (!needsStartSlot.has(step.kind)) releaseStartSlot(context);
      try {
        known = await takeStep(context, step, sandbox);
      } catch (error) {
        if (context.run.interrupted.aborted) {
          known = null;
          continue;
        }
        if (!isFailure(error) || error.code === 'store_unavailable') throw error;
        return { sandbox: await store.find(id), failure: error };
      }
    }
  }

  async #next(sandbox: Sandbox, known: ObservedSandbox | null, attempted: ReadonlySet<SandboxStep['kind']>): Promise<DecidedStep | AnyFailure> {
    const { runtime, clock } = this.#deps;
    const unseen = known === null ? stepWithoutInspect(sandbox) : null;
    if (unseen !== null && !attempted.has(unseen.kind)) return { ...unseen, fact: null };
    try {
      const fact = known ?? (await runtime.inspect(sandbox.instanceId));
      return { ...nextSandboxStep(sandbox, fact, clock.now(), attempted.has('resume')), fact };
    } catch (error) {
      if (!isFailure(error)) throw error;
      const blind = stepWithoutRuntime(sandbox, clock.now());
      return blind.kind === 'none' ? error : { ...blind, fact: null };
    }
  }
}
