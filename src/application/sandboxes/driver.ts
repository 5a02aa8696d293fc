import { Failure, isFailure, type AnyFailure } from '../../domain/failure.ts';
import { decide, decideBlind, readyDeadline, type Step } from '../../domain/reconciliation.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxFact } from '../../domain/sandbox-fact.ts';
import { deepen, markDeleted, markRemoved, move, type Change, type SandboxEvent } from '../../domain/sandbox-lifecycle.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/logger.ts';
import type { ReadinessProbe } from '../../ports/readiness-probe.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import { KeyedRuns, type Run } from '../keyed-runs.ts';

export interface SandboxDriverParts {
  readonly store: SandboxStore;
  readonly runtime: SandboxRuntime;
  readonly probe: ReadinessProbe;
  readonly clock: Clock;
  readonly logger: Logger;
}

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
  readonly #closing = new AbortController();

  constructor(parts: SandboxDriverParts) {
    this.#parts = parts;
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
    void this.#settleAlone(id);
  }

  /** Ends every wait; what was under way is found again by the next process. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#runs.drain();
  }

  async #settleAlone(id: string): Promise<void> {
    try {
      const { failure } = await this.settle(id);
      if (failure !== null) this.#parts.logger.warn({ sandbox: id, code: failure.code, reason: failure.message }, 'sandbox not settled');
    } catch (error) {
      this.#parts.logger.error({ sandbox: id, error }, 'sandbox not settled');
    }
  }

  async #drive(id: string, run: Run, earlier: AnyFailure | null): Promise<Settled> {
    let known: SandboxFact | null = null;
    let failure = earlier;
    const attempted = new Set<Step['kind']>();
    for (;;) {
      run.rearm();
      const sandbox = await this.#parts.store.find(id);
      if (sandbox === null || this.#closing.signal.aborted) return { sandbox, failure };
      const step = await this.#next(sandbox, known);
      if (isFailure(step)) return { sandbox, failure: step };
      if (step.kind === 'none' || attempted.has(step.kind)) return { sandbox, failure };
      if (acts.has(step.kind)) attempted.add(step.kind);
      try {
        known = await this.#take(step, sandbox, run);
      } catch (error) {
        if (run.interrupted.aborted) {
          known = null;
          continue;
        }
        if (!isFailure(error) || error.code === 'store_unavailable') throw error;
        failure = error;
        await this.#takeBack(step, sandbox, error);
        return { sandbox: await this.#parts.store.find(id), failure };
      }
    }
  }

  async #next(sandbox: Sandbox, known: SandboxFact | null): Promise<DrivenStep | AnyFailure> {
    const { runtime, clock } = this.#parts;
    try {
      const fact = known ?? (await runtime.inspect(sandbox.id));
      return { ...decide(sandbox, fact, clock.now()), fact };
    } catch (error) {
      if (!isFailure(error)) throw error;
      const blind = decideBlind(sandbox, clock.now());
      return blind.kind === 'none' ? error : { ...blind, fact: null };
    }
  }

  /** Takes the step; answers with the fact where the step found it out. */
  async #take(step: DrivenStep, sandbox: Sandbox, run: Run): Promise<SandboxFact | null> {
    const { runtime, clock, store } = this.#parts;
    const launch = { id: sandbox.id, spec: sandbox.spec, sessionApiKey: sandbox.sessionApiKey };
    switch (step.kind) {
      case 'none':
        return step.fact;
      case 'record':
        await this.#record(sandbox, step.event, { now: clock.now(), detail: step.detail, ...(step.pauseKind && { pauseKind: step.pauseKind }) });
        return step.fact;
      case 'deepen':
        await store.replace(deepen(sandbox, step.detail, clock.now()));
        this.#parts.logger.info({ sandbox: sandbox.id, pause_kind: 'stop', detail: step.detail }, 'sandbox rests deeper');
        return step.fact;
      case 'delete':
        await store.replace(markDeleted(sandbox, clock.now()));
        this.#parts.logger.info({ sandbox: sandbox.id, detail: step.detail }, 'sandbox deleted by its rest rules');
        return step.fact;
      case 'forget':
        await store.replace(markRemoved(sandbox, clock.now()));
        return step.fact;
      case 'launch': {
        const progress = (detail: string) => this.#parts.logger.debug({ sandbox: sandbox.id, detail }, 'sandbox starting');
        const fact = await runtime.start(launch, progress, AbortSignal.any([run.interrupted, this.#closing.signal]));
        if (fact.detail !== null && (fact.state === 'absent' || fact.state === 'created')) {
          await this.#record(sandbox, 'failed', { now: clock.now(), detail: fact.detail });
        }
        return fact;
      }
      case 'await-ready':
        return await this.#awaitReady(sandbox, step.fact, run);
      case 'freeze':
      case 'stop': {
        const fact = await runtime[step.kind](sandbox.id);
        if (fact.state === 'running' && sandbox.status === 'PAUSING') throw this.#refusal(fact);
        return fact;
      }
      case 'resume': {
        const fact = await runtime.resume(launch, AbortSignal.any([run.interrupted, this.#closing.signal]));
        if (fact.state === 'stopped' && sandbox.status === 'RESUMING') {
          await this.#record(sandbox, 'failed', { now: clock.now(), detail: fact.detail ?? 'it ended while it resumed' });
        }
        return fact;
      }
      case 'remove':
        await runtime.remove(sandbox.id);
        return null;
    }
  }

  async #awaitReady(sandbox: Sandbox, fact: SandboxFact | null, run: Run): Promise<null> {
    const { probe, clock } = this.#parts;
    const late = new AbortController();
    const cancel = clock.after(Math.max(0, readyDeadline(sandbox) - clock.now()), () => late.abort());
    const signal = AbortSignal.any([run.woken, this.#closing.signal, late.signal]);
    const exposedUrls = fact?.exposedUrls ?? [];
    try {
      await probe.untilReady(sandbox.spec.ready, exposedUrls, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      return null;
    } finally {
      cancel();
    }
    await this.#record(sandbox, 'ready', { now: clock.now(), detail: readyDetail(sandbox), exposedUrls });
    return null;
  }

  /** After the runtime failed: a move that it refused is taken back. */
  async #takeBack(step: Step, sandbox: Sandbox, failure: AnyFailure): Promise<void> {
    const pausing = sandbox.status === 'PAUSING' && (step.kind === 'freeze' || step.kind === 'stop');
    const resuming = sandbox.status === 'RESUMING' && step.kind === 'resume';
    if (!pausing && !resuming) return;
    await this.#record(sandbox, 'refused', { now: this.#parts.clock.now(), detail: failure.message });
  }

  async #record(sandbox: Sandbox, event: SandboxEvent, change: Change): Promise<void> {
    const next = move(sandbox, event, change);
    if (next === null) return;
    const { kind } = await this.#parts.store.replace(next);
    if (kind === 'stale') return;
    this.#parts.logger.info(
      { sandbox: next.id, from: sandbox.status, to: next.status, event, detail: next.statusDetail },
      'sandbox moved',
    );
  }

  #refusal(fact: SandboxFact): AnyFailure {
    const reason = fact.detail ?? 'it left the sandbox running';
    return new Failure('runtime_unavailable', { runtime: this.#parts.runtime.name, reason, retryAfterSeconds: 5 });
  }
}

type DrivenStep = Step & { readonly fact: SandboxFact | null };

/** Steps that act on the runtime are taken once a drive; what is still due afterwards waits for the next sweep. */
const acts: ReadonlySet<Step['kind']> = new Set(['launch', 'freeze', 'stop', 'resume', 'remove']);

function readyDetail({ status, pauseKind }: Sandbox): string | null {
  if (status !== 'RESUMING') return null;
  return pauseKind === 'freeze'
    ? 'resumed: its processes went on where they were'
    : 'resumed: its processes were started again over the files that were kept';
}
