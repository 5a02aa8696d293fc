import { Failure, isFailure, reasonOfFailure } from '../../domain/failure.ts';
import { probeMissed } from '../../domain/readiness.ts';
import type { Reason } from '../../domain/reason.ts';
import { changed, takeStartSlot } from '../../domain/sandbox-lifecycle.ts';
import { type ExposedUrl, isPooled, type Sandbox, type ObservedSandbox } from '../../domain/sandbox.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { SandboxLaunch } from '../../ports/sandbox-runtime.ts';
import { ProgressReporter } from '../progress-reporter.ts';
import { recordMove } from './sandbox-records.ts';
import type { StartPriority, StartSlot } from './start-queue.ts';
import {
  releaseStartSlot, revertOnFailure, type SandboxReconcilerDeps, type StepContext, timeoutOfStart, unwanted,
} from './sandbox-step-context.ts';

class SandboxProgress {
  readonly reporter: ProgressReporter;
  readonly #deps: SandboxReconcilerDeps;
  readonly #moved = new AbortController();
  #sandbox: Sandbox;

  constructor(deps: SandboxReconcilerDeps, sandbox: Sandbox) {
    this.#deps = deps;
    this.#sandbox = sandbox;
    this.reporter = new ProgressReporter({ clock: deps.clock, write: (reason) => this.#write(reason), written: sandbox.statusReason });
  }

  get sandbox(): Sandbox {
    return this.#sandbox;
  }

  /** Fires when somebody else has changed the status, so that the step may not be wanted any more. */
  get moved(): AbortSignal {
    return this.#moved.signal;
  }

  /** If somebody else has written, it was another process that reports from now on, or a change of the status. */
  async #write(reason: Reason): Promise<boolean> {
    const { store, clock } = this.#deps;
    const { id, status, startingSince } = this.#sandbox;
    const next = changed(this.#sandbox, clock.now(), { statusReason: reason });
    const { kind } = await store.replace(next);
    const latest = kind === 'replaced' ? next : await store.find(id);
    const isSame = latest?.deletedAt === null && latest.status === status && latest.startingSince === startingSince;
    if (isSame) this.#sandbox = latest;
    else this.#moved.abort();
    return kind === 'replaced';
  }
}

/** Gets what the host lacks and a start slot, whose time limit begins then. Meanwhile the record says what it waits for. */
export async function takeStartSlotStep(context: StepContext, sandbox: Sandbox): Promise<void> {
  const { deps } = context;
  const { store, clock } = deps;
  const progress = new SandboxProgress(deps, sandbox);
  const signal = unwanted(context, progress.moved);
  try {
    const slot = await prepare(context, progress, 'requested', signal);
    await progress.reporter.end();
    if (slot === null) return;
    context.startSlot = slot;
    await store.replace(takeStartSlot(progress.sandbox, clock.now()));
  } catch (error) {
    await progress.reporter.end();
    if (signal.aborted) return;
    if (isFailure(error) && error.code !== 'store_unavailable') {
      // The time limit begins, so that it does not wait for ever for a runtime that only fails.
      await store.replace(takeStartSlot(progress.sandbox, clock.now(), reasonOfFailure(error)));
    }
    throw error;
  }
}

/** Gets what the sandbox needs, and a start slot. Returns null if the first is not possible; that is written then. */
async function prepare(
  { deps }: StepContext, progress: SandboxProgress, priority: StartPriority, signal: AbortSignal,
): Promise<StartSlot | null> {
  const { runtime, queue, clock } = deps;
  const { spec, ownerId, status } = progress.sandbox;
  if (status === 'STARTING') {
    const missing = missingSecrets(deps, spec);
    const provision = missing === null
      ? await runtime.provide(spec, (reason) => progress.reporter.report(reason), signal)
      : { kind: 'refused' as const, reason: missing };
    if (provision.kind === 'refused') {
      await progress.reporter.end();
      await recordMove(deps, progress.sandbox, 'failed', { now: clock.now(), reason: provision.reason }, 'runtime');
      return null;
    }
  }
  progress.reporter.report({ code: 'waiting_for_start_slot' });
  return await queue.take(ownerId, isPooled(progress.sandbox) ? 'pool' : priority, signal);
}

/** Creates the sandbox and runs it. Returns null if that was interrupted. */
export async function launchStep(context: StepContext, sandbox: Sandbox): Promise<ObservedSandbox | null> {
  const { deps } = context;
  const progress = new SandboxProgress(deps, sandbox);
  const report = (reason: Reason): void => progress.reporter.report(reason);
  const observed = await withStartSlot(context, progress, (signal) => deps.runtime.start(launchOf(deps, sandbox), report, signal));
  // With a reason it could not start; without one it is on its way.
  if (observed !== null && observed.reason !== null && (observed.state === 'absent' || observed.state === 'created')) {
    await recordMove(deps, progress.sandbox, 'failed', { now: deps.clock.now(), reason: observed.reason }, 'runtime');
  }
  return observed;
}

/** Continues a frozen sandbox at once; runs a stopped one again with a start slot. Returns null if that was interrupted. */
export async function resumeStep(context: StepContext, sandbox: Sandbox, found: ObservedSandbox | null): Promise<ObservedSandbox | null> {
  const { deps } = context;
  const progress = new SandboxProgress(deps, sandbox);
  const resume = (signal: AbortSignal): Promise<ObservedSandbox> => deps.runtime.resume(launchOf(deps, sandbox), signal);
  const act = (): Promise<ObservedSandbox | null> =>
    found?.state === 'frozen' ? whileWanted(context, progress, resume) : withStartSlot(context, progress, resume);
  return await revertOnFailure(deps, 'RESUMING', () => progress.sandbox, act);
}

function launchOf({ secrets, runtime }: SandboxReconcilerDeps, sandbox: Sandbox): SandboxLaunch {
  const { instanceId, spec, sessionApiKey, ownerId } = sandbox;
  const missing = missingSecrets({ secrets }, spec);
  if (missing !== null) throw new Failure('runtime_unavailable', { runtime: runtime.name, reason: missing, retryAfterSeconds: 60 });
  const values = Object.fromEntries(spec.secrets.map((name) => [name, secrets.get(name) ?? '']));
  return { id: instanceId, spec, sessionApiKey, secrets: values, ...(!isPooled(sandbox) && { ownerId }) };
}

function missingSecrets({ secrets }: Pick<SandboxReconcilerDeps, 'secrets'>, spec: SandboxSpec): Reason | null {
  const names = spec.secrets.filter((name) => secrets.get(name) === null);
  return names.length === 0 ? null : { code: 'sandbox_secrets_missing', names };
}

async function withStartSlot(
  context: StepContext,
  progress: SandboxProgress,
  work: (signal: AbortSignal) => Promise<ObservedSandbox>,
): Promise<ObservedSandbox | null> {
  try {
    return await whileWanted(context, progress, async (signal) => {
      // A sandbox that had a slot in an earlier process has to get one again.
      context.startSlot ??= await prepare(context, progress, 'interrupted', signal);
      return context.startSlot === null ? null : await work(signal);
    });
  } finally {
    releaseStartSlot(context);
    await progress.reporter.end();
  }
}

/** Does the work unless it is too late or not wanted any more. Returns null if it was interrupted. */
async function whileWanted(
  context: StepContext,
  progress: SandboxProgress,
  work: (signal: AbortSignal) => Promise<ObservedSandbox | null>,
): Promise<ObservedSandbox | null> {
  using late = timeoutOfStart(context.deps.clock, progress.sandbox);
  const signal = unwanted(context, progress.moved, late.signal);
  try {
    return await work(signal);
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  }
}

/** Waits until the program is ready, something happens, or it is too late. A late start says which probe missed last. */
export async function awaitReadyStep(context: StepContext, sandbox: Sandbox, observed: ObservedSandbox | null): Promise<void> {
  const { deps } = context;
  const { clock } = deps;
  const exposedUrls = observed?.exposedUrls ?? [];
  const progress = new SandboxProgress(deps, sandbox);
  using late = timeoutOfStart(clock, sandbox);
  let isReady = false;
  try {
    isReady = await probe(context, progress, exposedUrls, late.signal);
  } finally {
    await (late.signal.aborted ? progress.reporter.finish() : progress.reporter.end());
  }
  if (!isReady) return;
  const reason: Reason | null = sandbox.status === 'RESUMING' ? { code: 'processes_restarted' } : null;
  await recordMove(deps, progress.sandbox, 'ready', { now: clock.now(), reason, exposedUrls }, 'runtime');
}

/** Returns true when the probe has succeeded; false if the wait was interrupted. */
async function probe(context: StepContext, progress: SandboxProgress, urls: readonly ExposedUrl[], late: AbortSignal): Promise<boolean> {
  const { deps, run } = context;
  const { ready } = progress.sandbox.spec;
  const signal = unwanted(context, run.woken, progress.moved, late);
  try {
    await deps.probe.untilReady(ready, urls, signal, (miss) => {
      const reason = probeMissed(ready, miss);
      if (reason !== null) progress.reporter.report(reason);
    });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
