import { type AnyFailure, isFailure } from '../../domain/failure.ts';
import { nextDue } from '../../domain/idle-policy.ts';
import { decide, decideBlind, decideUnseen, type Step } from '../../domain/sandbox-next-step.ts';
import type { Sandbox, SandboxFact } from '../../domain/sandbox.ts';
import { KeyedRuns, type Run } from '../keyed-worker.ts';
import { Alarms } from '../timers.ts';
import { type DrivenStep, endTurn, type SandboxDriverParts, type StepContext } from './step-context.ts';
import { acts, needsTurn, takeStep } from './steps.ts';

export type { SandboxDriverParts } from './step-context.ts';

/** Where a sandbox came to rest, and what kept it from where it was to go. */
export interface Settled {
  readonly sandbox: Sandbox | null;
  readonly failure: AnyFailure | null;
}

/**
 * Brings what is written of a sandbox and what the runtime has of it together, step by step, until there is nothing
 * left to do. It is the only place that acts on the runtime: use cases write an intent and let it drive; the
 * reconciler lets it drive whatever an earlier process left half-done. Level-triggered: each step is decided anew from
 * the record and the fact, and every write is a compare-and-set, so that several processes may drive one sandbox.
 */
export class SandboxDriver {
  readonly #parts: SandboxDriverParts;
  readonly #runs: KeyedRuns<Settled>;
  readonly #alarms: Alarms;
  readonly #listeners = new Set<{ readonly call: (settled: Settled) => void }>();
  readonly #closing = new AbortController();

  constructor(parts: SandboxDriverParts) {
    this.#parts = parts;
    this.#alarms = new Alarms(parts.clock, (id) => this.nudge(id));
    this.#runs = new KeyedRuns((id, run, earlier) => this.#drive(id, run, earlier?.failure ?? null));
  }

  /** Drives the sandbox until it rests. Rejects only where the store fails. */
  settle(id: string): Promise<Settled> {
    return this.#runs.run(id);
  }

  /** Drives the sandbox until it rests, leaving off what is no longer wanted. */
  redirect(id: string): Promise<Settled> {
    this.#runs.interrupt(id);
    return this.settle(id);
  }

  /** Something may have happened to the sandbox: drives it without anyone waiting. */
  nudge(id: string): void {
    this.#runs.wake(id);
    void this.#logged({ sandbox: id }, () => this.settle(id));
  }

  /** The runtime tells that something may have happened to what it knows by this id. */
  nudgeInstance(instanceId: string): void {
    void this.#logged({ instance: instanceId }, async () => {
      const sandbox = await this.#parts.store.findByInstance(instanceId);
      if (sandbox !== null) this.nudge(sandbox.id);
    });
  }

  /** Drives the sandbox when something becomes due for it by itself. */
  watch(sandbox: Sandbox): void {
    this.#alarms.set(sandbox.id, nextDue(sandbox));
  }

  /** Calls the listener with where each sandbox that was driven came to rest. Answers with the function that ends it. */
  onSettled(call: (settled: Settled) => void): () => void {
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

  async #logged(fields: Readonly<Record<string, string>>, work: () => Promise<Settled | void>): Promise<void> {
    const { logger } = this.#parts;
    try {
      const failure = (await work())?.failure ?? null;
      if (failure !== null) logger.warn({ ...fields, code: failure.code, reason: failure.message }, 'sandbox not settled');
    } catch (error) {
      logger.error({ ...fields, error }, 'sandbox not settled');
    }
  }

  async #drive(id: string, run: Run, earlier: AnyFailure | null): Promise<Settled> {
    const context: StepContext = { parts: this.#parts, run, closing: this.#closing.signal, turn: null };
    try {
      const settled = await this.#untilRest(id, context, earlier);
      this.#alarms.set(id, settled.sandbox === null ? null : nextDue(settled.sandbox));
      for (const { call } of this.#listeners) call(settled);
      return settled;
    } finally {
      endTurn(context);
    }
  }

  async #untilRest(id: string, context: StepContext, earlier: AnyFailure | null): Promise<Settled> {
    const { store } = this.#parts;
    let known: SandboxFact | null = null;
    const attempted = new Set<Step['kind']>();
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
      if (!needsTurn.has(step.kind)) endTurn(context);
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

  async #next(sandbox: Sandbox, known: SandboxFact | null, attempted: ReadonlySet<Step['kind']>): Promise<DrivenStep | AnyFailure> {
    const { runtime, clock } = this.#parts;
    const unseen = known === null ? decideUnseen(sandbox) : null;
    if (unseen !== null && !attempted.has(unseen.kind)) return { ...unseen, fact: null };
    try {
      const fact = known ?? (await runtime.inspect(sandbox.instanceId));
      return { ...decide(sandbox, fact, clock.now(), attempted.has('resume')), fact };
    } catch (error) {
      if (!isFailure(error)) throw error;
      const blind = decideBlind(sandbox, clock.now());
      return blind.kind === 'none' ? error : { ...blind, fact: null };
    }
  }
}
