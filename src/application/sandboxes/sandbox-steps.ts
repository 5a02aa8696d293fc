import { Failure, isFailure, reasonOfFailure } from '../../domain/failure.ts';
import { probeMissed } from '../../domain/readiness.ts';
import type { Reason } from '../../domain/reason.ts';
import { beginStartTimeLimit, readyDeadline } from '../../domain/sandbox-lifecycle.ts';
import type { SandboxStep } from '../../domain/sandbox-next-step.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import { type ExposedUrl, isPooled, type ObservedSandbox, type PauseKind, type Sandbox } from '../../domain/sandbox.ts';
import type { Provision, SandboxLaunch } from '../../ports/sandbox-runtime.ts';
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

/** The steps that start or resume a sandbox. They are interrupted if they are obsolete or too late. */
type StartStep = Extract<SandboxStep['kind'], 'take-start-slot' | 'launch' | 'resume' | 'await-ready'>;

/** When to try again to pause a sandbox that the runtime left running. */
const pauseRetryAfterSeconds = 5;

/** Takes the steps of one run of the reconciler. Disposing of it returns the start slot. */
export class SandboxSteps implements Disposable {
  readonly #deps: SandboxReconcilerDeps;
  readonly #run: KeyedRun;
  readonly #closing: AbortSignal;
  readonly #watchedSince: () => number;
  #startSlot: StartSlot | null = null;

  /** `closing` fires when this process ends. `watchedSince` is that of the reconciler. */
  constructor(deps: SandboxReconcilerDeps, run: KeyedRun, closing: AbortSignal, watchedSince: () => number) {
    this.#deps = deps;
    this.#run = run;
    this.#closing = closing;
    this.#watchedSince = watchedSince;
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
      case 'launch':
      case 'resume':
      case 'await-ready':
        return await this.#takeStartStep(step.kind, sandbox, observed);
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

  /** Takes the step until it is interrupted, obsolete or too late. Meanwhile the record says what it waits for. */
  async #takeStartStep(kind: StartStep, sandbox: Sandbox, observed: ObservedSandbox | null): Promise<ObservedSandbox | null> {
    const { store, clock } = this.#deps;
    await using progress = new SandboxProgress(this.#deps, sandbox);
    using late = this.#timeoutOfStart(sandbox);
    const ends = kind === 'await-ready' ? [this.#run.woken] : [];
    const signal = this.#interruptSignal(progress.superseded, late.signal, ...ends);
    try {
      switch (kind) {
        case 'take-start-slot':
          if ((await this.#prepareStart(progress, signal)) === 'prepared') {
            await store.sandboxes.replace(beginStartTimeLimit(await progress.end(), clock.now()));
          }
          return null;
        case 'launch':
          return await this.#launch(progress, signal);
        case 'resume':
          return await this.#resume(progress, observed, signal);
        case 'await-ready':
          await this.#awaitReady(progress, observed?.exposedUrls ?? [], signal);
          return null;
      }
    } catch (error) {
      // The reason of a late start contains the last report, for example the last missed probe.
      const written = await (late.signal.aborted ? progress.finish() : progress.end());
      if (signal.aborted) return null;
      await this.#recordFailure(kind, written, error);
      throw error;
    }
  }

  /** Creates the sandbox and runs it. */
  async #launch(progress: SandboxProgress, signal: AbortSignal): Promise<ObservedSandbox | null> {
    if ((await this.#prepareStart(progress, signal)) === 'refused') return null;
    const observed = await this.#deps.runtime.start(this.#launchOf(progress.sandbox), (reason) => progress.report(reason), signal);
    const { reason, state } = observed;
    // With a reason, the start failed. Without a reason, it is in progress.
    if (reason !== null && (state === 'absent' || state === 'created')) await this.#fail(progress, reason);
    return observed;
  }

  /** Continues a frozen sandbox at once. Runs a stopped one again with a start slot. */
  async #resume(progress: SandboxProgress, observed: ObservedSandbox | null, signal: AbortSignal): Promise<ObservedSandbox | null> {
    const needsSlot = observed?.state !== 'frozen';
    if (needsSlot && (await this.#prepareStart(progress, signal)) === 'refused') return null;
    return await this.#deps.runtime.resume(this.#launchOf(progress.sandbox), signal);
  }

  /** Waits until the program is ready, and writes it. */
  async #awaitReady(progress: SandboxProgress, exposedUrls: readonly ExposedUrl[], signal: AbortSignal): Promise<void> {
    const { probe, clock } = this.#deps;
    const { status, spec: { ready } } = progress.sandbox;
    await probe.untilReady(ready, exposedUrls, signal, (miss) => {
      const reason = probeMissed(ready, miss);
      if (reason !== null) progress.report(reason);
    });
    const reason: Reason | null = status === 'RESUMING' ? { code: 'processes_restarted' } : null;
    await recordTransition(this.#deps, await progress.end(), 'ready', { now: clock.now(), reason, exposedUrls }, 'runtime');
  }

  /**
   * Provides what a new sandbox needs, and waits for a start slot. Does nothing if this run has one. A sandbox that had one in an earlier
   * process or run has to get one again. If something is not available, writes that the start has failed.
   */
  async #prepareStart(progress: SandboxProgress, signal: AbortSignal): Promise<'prepared' | 'refused'> {
    if (this.#startSlot !== null) return 'prepared';
    if (progress.sandbox.status === 'STARTING') {
      const provision = await this.#provide(progress, signal);
      if (provision.kind === 'refused') {
        await this.#fail(progress, provision.reason);
        return 'refused';
      }
    }
    this.#startSlot = await this.#waitForStartSlot(progress, signal);
    return 'prepared';
  }

  /** Provides what the spec needs from the deployment and the runtime, such as secrets and the image. */
  async #provide(progress: SandboxProgress, signal: AbortSignal): Promise<Provision> {
    const { spec } = progress.sandbox;
    const { missing } = this.#secretsOf(spec);
    if (missing !== null) return { kind: 'refused', reason: missing };
    return await this.#deps.runtime.provide(spec, (reason) => progress.report(reason), signal);
  }

  #waitForStartSlot(progress: SandboxProgress, signal: AbortSignal): Promise<StartSlot> {
    const { sandbox } = progress;
    const { ownerId, startingSince } = sandbox;
    progress.report({ code: 'waiting_for_start_slot' });
    const priority = startingSince !== null && startingSince < this.#watchedSince() ? 'interrupted' : 'requested';
    return this.#deps.startQueue.take(ownerId, isPooled(sandbox) ? 'pool' : priority, signal);
  }

  async #fail(progress: SandboxProgress, reason: Reason): Promise<void> {
    await recordTransition(this.#deps, await progress.end(), 'failed', { now: this.#deps.clock.now(), reason }, 'runtime');
  }

  /** Freezes or stops the sandbox. If the runtime refuses, the sandbox is RUNNING again. */
  async #pause(sandbox: Sandbox, kind: PauseKind, before: ObservedSandbox | null): Promise<ObservedSandbox | null> {
    const { runtime } = this.#deps;
    // Nothing can run in a frozen sandbox. Its changes were kept before the freeze.
    if (sandbox.status === 'PAUSING' && before?.state !== 'frozen') {
      const signal = this.#interruptSignal();
      await keepBeforePause(this.#deps, sandbox.id, signal);
      // The sandbox is deleted now, or the next server keeps the changes, for which it must run.
      if (signal.aborted) return null;
    }
    try {
      const observed = await runtime[kind](sandbox.instanceId);
      if (observed.state !== 'running' && (kind === 'freeze' || observed.state !== 'frozen')) return observed;
      const reason = observed.reason ?? { code: 'pause_refused' };
      throw new Failure('runtime_unavailable', { runtime: runtime.name, reason, retryAfterSeconds: pauseRetryAfterSeconds });
    } catch (error) {
      await this.#recordFailure(kind, sandbox, error);
      throw error;
    }
  }

  /** Writes what a failure of the runtime changes. After a pause or a resumption, this is the status before it. */
  async #recordFailure(step: StartStep | PauseKind, sandbox: Sandbox, error: unknown): Promise<void> {
    if (!isFailure(error) || error.code === 'store_unavailable') return;
    const { status, pausedBy } = sandbox;
    const now = this.#deps.clock.now();
    const reason = reasonOfFailure(error);
    if (step === 'take-start-slot') {
      // The time limit begins, so a runtime that always fails cannot block the start for ever.
      await this.#deps.store.sandboxes.replace(beginStartTimeLimit(sandbox, now, reason));
    } else if (step !== 'await-ready' && (status === 'PAUSING' || status === 'RESUMING')) {
      if (pausedBy?.hasFailed === true) await recordTransition(this.#deps, sandbox, 'failed', { now, reason: pausedBy.reason }, 'runtime');
      else await recordTransition(this.#deps, sandbox, 'refused', { now, reason }, 'runtime');
    }
  }

  /** Returns a signal that fires when this run must stop the step. */
  #interruptSignal(...others: readonly AbortSignal[]): AbortSignal {
    return AbortSignal.any([this.#run.interrupted, this.#closing, ...others]);
  }

  /** Returns a signal that fires when the start or resumption of the sandbox is too late. */
  #timeoutOfStart(sandbox: Sandbox): ReturnType<typeof timeout> {
    const { clock } = this.#deps;
    return timeout(clock, Math.max(0, (readyDeadline(sandbox, this.#watchedSince()) ?? Number.MAX_SAFE_INTEGER) - clock.now()));
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
