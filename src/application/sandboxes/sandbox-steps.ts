import { Failure, isFailure, reasonOfFailure } from '../../domain/failure.ts';
import { probeMissed } from '../../domain/readiness.ts';
import type { Reason } from '../../domain/reason.ts';
import { readyDeadline, takeStartSlot } from '../../domain/sandbox-lifecycle.ts';
import type { SandboxStep } from '../../domain/sandbox-next-step.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import { type ExposedUrl, isPooled, type ObservedSandbox, type PauseKind, type Sandbox } from '../../domain/sandbox.ts';
import type { SandboxLaunch } from '../../ports/sandbox-runtime.ts';
import { keepBeforePause } from '../conversations/kept-changes.ts';
import type { KeyedRun } from '../keyed-worker.ts';
import { resolveSecrets } from '../secrets.ts';
import { timeout } from '../timers.ts';
import { withLastOutput } from './last-output.ts';
import { SandboxProgress } from './sandbox-progress.ts';
import { recordTransition, writeSandbox } from './sandbox-records.ts';
import type { SandboxReconcilerDeps } from './sandbox-reconciler.ts';
import type { StartSlot } from './start-queue.ts';

/** A step, and the observed state on which it was decided. Null if there was no inspect. */
export type DecidedStep = SandboxStep & { readonly observed: ObservedSandbox | null };

type Work = (signal: AbortSignal) => Promise<ObservedSandbox | null>;

/** When to try again to pause a sandbox that the runtime left running. */
const pauseRetryAfterSeconds = 5;

/** Takes the steps of one run of the reconciler. Disposing of it returns the start slot. */
export class SandboxSteps implements Disposable {
  readonly #deps: SandboxReconcilerDeps;
  readonly #run: KeyedRun;
  readonly #closing: AbortSignal;
  readonly #openedAt: number;
  #startSlot: StartSlot | null = null;

  /** `closing` fires when this process ends. `openedAt` is when it began, in milliseconds since the epoch. */
  constructor(deps: SandboxReconcilerDeps, run: KeyedRun, closing: AbortSignal, openedAt: number) {
    this.#deps = deps;
    this.#run = run;
    this.#closing = closing;
    this.#openedAt = openedAt;
  }

  [Symbol.dispose](): void {
    this.#releaseStartSlot();
  }

  /** Takes the step. Returns the new state only if it is certain without a new inspect. Otherwise null. */
  async take(step: DecidedStep, sandbox: Sandbox): Promise<ObservedSandbox | null> {
    const { store, runtime } = this.#deps;
    const { observed } = step;
    if (step.kind !== 'launch' && step.kind !== 'resume') this.#releaseStartSlot();
    switch (step.kind) {
      case 'none':
        return observed;
      case 'write':
        if (step.by === null) await store.sandboxes.replace(step.to);
        else await writeSandbox(this.#deps, sandbox, await withLastOutput(this.#deps, sandbox, step.to, observed), step.by);
        return observed;
      case 'take-start-slot':
        await this.#takeStartSlot(sandbox);
        return null;
      case 'launch':
        return await this.#launch(sandbox);
      case 'resume':
        return await this.#resume(sandbox, observed);
      case 'await-ready':
        await this.#awaitReady(sandbox, observed?.exposedUrls ?? []);
        return null;
      case 'freeze':
      case 'stop':
        return await this.#pause(sandbox, step.kind, observed);
      case 'remove':
        await runtime.remove(sandbox.instanceId);
        return null;
    }
  }

  #releaseStartSlot(): void {
    this.#startSlot?.release();
    this.#startSlot = null;
  }

  /** Waits for the runtime's provision and a start slot; then the time limit begins. Meanwhile the record says what it waits for. */
  async #takeStartSlot(sandbox: Sandbox): Promise<void> {
    const { store, clock } = this.#deps;
    const progress = new SandboxProgress(this.#deps, sandbox);
    const signal = this.#interruptSignal(progress.superseded);
    try {
      const slot = await this.#provideAndTakeSlot(progress, signal);
      await progress.reporter.end();
      if (slot === null) return;
      this.#startSlot = slot;
      await store.sandboxes.replace(takeStartSlot(progress.sandbox, clock.now()));
    } catch (error) {
      await progress.reporter.end();
      if (signal.aborted) return;
      if (isFailure(error) && error.code !== 'store_unavailable') {
        // The time limit begins, so a runtime that always fails cannot block the start for ever.
        await store.sandboxes.replace(takeStartSlot(progress.sandbox, clock.now(), reasonOfFailure(error)));
      }
      throw error;
    }
  }

  /** Provides what the sandbox needs, and takes a start slot. If the runtime refuses, writes the reason and returns null. */
  async #provideAndTakeSlot(progress: SandboxProgress, signal: AbortSignal): Promise<StartSlot | null> {
    const { runtime, startQueue, clock } = this.#deps;
    const { spec, ownerId, status, startingSince } = progress.sandbox;
    const { reporter } = progress;
    if (status === 'STARTING') {
      const { missing } = this.#secretsOf(spec);
      const provision = missing === null
        ? await runtime.provide(spec, (reason) => reporter.report(reason), signal)
        : { kind: 'refused' as const, reason: missing };
      if (provision.kind === 'refused') {
        await reporter.end();
        await recordTransition(this.#deps, progress.sandbox, 'failed', { now: clock.now(), reason: provision.reason }, 'runtime');
        return null;
      }
    }
    reporter.report({ code: 'waiting_for_start_slot' });
    const priority = startingSince !== null && startingSince < this.#openedAt ? 'interrupted' : 'requested';
    return await startQueue.take(ownerId, isPooled(progress.sandbox) ? 'pool' : priority, signal);
  }

  /** Creates the sandbox and runs it. Returns null if that was interrupted. */
  async #launch(sandbox: Sandbox): Promise<ObservedSandbox | null> {
    const { runtime, clock } = this.#deps;
    const progress = new SandboxProgress(this.#deps, sandbox);
    const report = (reason: Reason): void => progress.reporter.report(reason);
    const observed = await this.#withStartSlot(progress, (signal) => runtime.start(this.#launchOf(sandbox), report, signal));
    // With a reason, the start failed. Without a reason, it is in progress.
    if (observed !== null && observed.reason !== null && (observed.state === 'absent' || observed.state === 'created')) {
      await recordTransition(this.#deps, progress.sandbox, 'failed', { now: clock.now(), reason: observed.reason }, 'runtime');
    }
    return observed;
  }

  /** Continues a frozen sandbox at once. Runs a stopped one again with a start slot. Returns null if interrupted. */
  async #resume(sandbox: Sandbox, observed: ObservedSandbox | null): Promise<ObservedSandbox | null> {
    const { runtime } = this.#deps;
    const progress = new SandboxProgress(this.#deps, sandbox);
    const resume: Work = (signal) => runtime.resume(this.#launchOf(sandbox), signal);
    try {
      return await (observed?.state === 'frozen' ? this.#whileCurrent(progress, resume) : this.#withStartSlot(progress, resume));
    } catch (error) {
      await this.#revertIfRefused(progress.sandbox, error);
      throw error;
    }
  }

  /** Freezes or stops the sandbox. If the runtime refuses, the sandbox is RUNNING again. */
  async #pause(sandbox: Sandbox, kind: PauseKind, before: ObservedSandbox | null): Promise<ObservedSandbox> {
    const { runtime } = this.#deps;
    // Nothing can run in a frozen sandbox. Its changes were kept before the freeze.
    if (sandbox.status === 'PAUSING' && before?.state !== 'frozen') await keepBeforePause(this.#deps, sandbox.id, this.#interruptSignal());
    try {
      const observed = await runtime[kind](sandbox.instanceId);
      if (observed.state !== 'running' && (kind === 'freeze' || observed.state !== 'frozen')) return observed;
      const reason = observed.reason ?? { code: 'pause_refused' };
      throw new Failure('runtime_unavailable', { runtime: runtime.name, reason, retryAfterSeconds: pauseRetryAfterSeconds });
    } catch (error) {
      await this.#revertIfRefused(sandbox, error);
      throw error;
    }
  }

  /** Writes the status before a pause or a resumption in which the runtime failed. */
  async #revertIfRefused(sandbox: Sandbox, error: unknown): Promise<void> {
    const { status, pausedBy } = sandbox;
    if ((status !== 'PAUSING' && status !== 'RESUMING') || !isFailure(error) || error.code === 'store_unavailable') return;
    const now = this.#deps.clock.now();
    if (pausedBy?.hasFailed === true) await recordTransition(this.#deps, sandbox, 'failed', { now, reason: pausedBy.reason }, 'runtime');
    else await recordTransition(this.#deps, sandbox, 'refused', { now, reason: reasonOfFailure(error) }, 'runtime');
  }

  /** Waits until the program is ready, the run is woken, or the time is over. Then the record keeps the last missed probe. */
  async #awaitReady(sandbox: Sandbox, exposedUrls: readonly ExposedUrl[]): Promise<void> {
    const { probe, clock } = this.#deps;
    const { ready } = sandbox.spec;
    const progress = new SandboxProgress(this.#deps, sandbox);
    using late = this.#timeoutOfStart(sandbox);
    const signal = this.#interruptSignal(this.#run.woken, progress.superseded, late.signal);
    try {
      await probe.untilReady(ready, exposedUrls, signal, (miss) => {
        const reason = probeMissed(ready, miss);
        if (reason !== null) progress.reporter.report(reason);
      });
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    } finally {
      await (late.signal.aborted ? progress.reporter.finish() : progress.reporter.end());
    }
    const reason: Reason | null = sandbox.status === 'RESUMING' ? { code: 'processes_restarted' } : null;
    await recordTransition(this.#deps, progress.sandbox, 'ready', { now: clock.now(), reason, exposedUrls }, 'runtime');
  }

  async #withStartSlot(progress: SandboxProgress, work: Work): Promise<ObservedSandbox | null> {
    try {
      return await this.#whileCurrent(progress, async (signal) => {
        // A sandbox that had a slot in an earlier process or run has to get one again.
        this.#startSlot ??= await this.#provideAndTakeSlot(progress, signal);
        return this.#startSlot === null ? null : await work(signal);
      });
    } finally {
      await progress.reporter.end();
    }
  }

  /** Does the work until it is too late or obsolete. Returns null if it was interrupted. */
  async #whileCurrent(progress: SandboxProgress, work: Work): Promise<ObservedSandbox | null> {
    using late = this.#timeoutOfStart(progress.sandbox);
    const signal = this.#interruptSignal(progress.superseded, late.signal);
    try {
      return await work(signal);
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    }
  }

  /** Returns a signal that fires when this run must stop the step. */
  #interruptSignal(...others: readonly AbortSignal[]): AbortSignal {
    return AbortSignal.any([this.#run.interrupted, this.#closing, ...others]);
  }

  /** Returns a signal that fires when the start or resumption of the sandbox is too late. */
  #timeoutOfStart(sandbox: Sandbox): ReturnType<typeof timeout> {
    const { clock } = this.#deps;
    return timeout(clock, Math.max(0, (readyDeadline(sandbox) ?? Number.MAX_SAFE_INTEGER) - clock.now()));
  }

  #launchOf(sandbox: Sandbox): SandboxLaunch {
    const { runtime } = this.#deps;
    const { instanceId, spec, sessionApiKey, ownerId } = sandbox;
    const { values, missing } = this.#secretsOf(spec);
    if (missing !== null) throw new Failure('runtime_unavailable', { runtime: runtime.name, reason: missing, retryAfterSeconds: 60 });
    return { id: instanceId, spec, sessionApiKey, secrets: values, ...(!isPooled(sandbox) && { ownerId }) };
  }

  /** Returns the values by name. `missing` is null if the deployment has all of them. */
  #secretsOf({ secrets }: SandboxSpec): { readonly values: Readonly<Record<string, string>>; readonly missing: Reason | null } {
    const { values, missing: names } = resolveSecrets(secrets, this.#deps.secrets);
    return { values, missing: names.length === 0 ? null : { code: 'sandbox_secrets_missing', names } };
  }
}
