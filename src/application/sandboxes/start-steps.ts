import { isFailure } from '../../domain/failure.ts';
import { lastProbe } from '../../domain/readiness.ts';
import { takeStartSlot } from '../../domain/sandbox-lifecycle.ts';
import { type ExposedUrl, isPooled, type Sandbox, type ObservedSandbox } from '../../domain/sandbox.ts';
import type { SandboxLaunch } from '../../ports/sandbox-runtime.ts';
import { ProgressReporter } from './progress-reporter.ts';
import { recordMove } from './sandbox-writes.ts';
import type { StartSlot, Urgency } from './start-queue.ts';
import { releaseStartSlot, type StepContext, revertOnFailure, untilTooLate, unwanted } from './step-context.ts';

/**
 * Gets what the sandbox needs and this host lacks, waits for its turn, and writes down that it has come, from when on its
 * time counts. Meanwhile `statusDetail` tells what it waits for.
 */
export async function takeStartSlotStep(context: StepContext, sandbox: Sandbox): Promise<void> {
  const { deps } = context;
  const { store, clock } = deps;
  const telling = new ProgressReporter(store, clock, sandbox);
  const signal = unwanted(context, telling.moved);
  try {
    const turn = await ready(context, telling, isPooled(sandbox) ? 'pool' : 'asked', signal);
    await telling.end();
    if (turn === null) return;
    context.startSlot = turn;
    await store.replace(takeStartSlot(telling.sandbox, clock.now()));
  } catch (error) {
    await telling.end();
    if (signal.aborted) return;
    if (isFailure(error) && error.code !== 'store_unavailable') {
      // Its time begins to count, so that it is not left waiting for ever for a runtime that only fails.
      await store.replace(takeStartSlot(telling.sandbox, clock.now(), error.message));
    }
    throw error;
  }
}

/** Makes sure that the drive has a turn for a sandbox whose time counts already, as an earlier process left it. */
async function ensureStartSlot(context: StepContext, telling: ProgressReporter, signal: AbortSignal): Promise<boolean> {
  context.startSlot ??= await ready(context, telling, isPooled(telling.sandbox) ? 'pool' : 'again', signal);
  return context.startSlot !== null;
}

/** What the sandbox needs, and a turn; null where that can't be had, which is then written. */
async function ready(context: StepContext, telling: ProgressReporter, urgency: Urgency, signal: AbortSignal): Promise<StartSlot | null> {
  const { deps } = context;
  const { runtime, queue, clock } = deps;
  const { spec, ownerId, status } = telling.sandbox;
  if (status === 'STARTING') {
    const provision = await runtime.provide(spec, (detail) => telling.report(detail), signal);
    if (provision.kind === 'refused') {
      await telling.end();
      await recordMove(deps, telling.sandbox, 'failed', { now: clock.now(), detail: provision.detail }, 'runtime');
      return null;
    }
  }
  telling.report('waiting for its turn');
  return await queue.take(ownerId, urgency, signal);
}

/** Makes the sandbox and runs it, in its turn. Null where that was left off. */
export async function launchStep(context: StepContext, sandbox: Sandbox): Promise<ObservedSandbox | null> {
  const { deps } = context;
  const telling = new ProgressReporter(deps.store, deps.clock, sandbox);
  const progress = (detail: string): void => telling.report(detail);
  const fact = await withStartSlot(context, telling, (signal) => deps.runtime.start(launchOf(sandbox), progress, signal));
  // With a detail it could not begin; without one, it is on its way.
  if (fact !== null && fact.detail !== null && (fact.state === 'absent' || fact.state === 'created')) {
    await recordMove(deps, telling.sandbox, 'failed', { now: deps.clock.now(), detail: fact.detail }, 'runtime');
  }
  return fact;
}

/** Lets a frozen sandbox go on at once, and runs a stopped one again in its turn. Null where that was left off. */
export async function resumeStep(context: StepContext, sandbox: Sandbox, found: ObservedSandbox | null): Promise<ObservedSandbox | null> {
  const { deps } = context;
  const telling = new ProgressReporter(deps.store, deps.clock, sandbox);
  const resume = (signal: AbortSignal): Promise<ObservedSandbox> => deps.runtime.resume(launchOf(sandbox), signal);
  const act = (): Promise<ObservedSandbox | null> =>
    found?.state === 'frozen' ? whileWanted(context, telling, resume) : withStartSlot(context, telling, resume);
  return await revertOnFailure(deps, 'RESUMING', () => telling.sandbox, act);
}

function launchOf({ instanceId, spec, sessionApiKey }: Sandbox): SandboxLaunch {
  return { id: instanceId, spec, sessionApiKey };
}

async function withStartSlot(context: StepContext, telling: ProgressReporter, work: (signal: AbortSignal) => Promise<ObservedSandbox>): Promise<ObservedSandbox | null> {
  try {
    return await whileWanted(context, telling, async (signal) => ((await ensureStartSlot(context, telling, signal)) ? await work(signal) : null));
  } finally {
    releaseStartSlot(context);
    await telling.end();
  }
}

/** Does the work unless it is too late or no longer wanted; null when it was left off. */
async function whileWanted(
  context: StepContext,
  telling: ProgressReporter,
  work: (signal: AbortSignal) => Promise<ObservedSandbox | null>,
): Promise<ObservedSandbox | null> {
  return await untilTooLate(context.deps.clock, telling.sandbox, async (late) => {
    const signal = unwanted(context, telling.moved, late);
    try {
      return await work(signal);
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    }
  });
}

/**
 * Waits until what runs in the sandbox serves; not longer than until something happened to it, or it is too late. What the
 * probe meets meanwhile is told, so that whoever finds it too late knows what was seen last.
 */
export async function awaitReadyStep(context: StepContext, sandbox: Sandbox, fact: ObservedSandbox | null): Promise<void> {
  const { deps } = context;
  const { store, clock } = deps;
  const exposedUrls = fact?.exposedUrls ?? [];
  const telling = new ProgressReporter(store, clock, sandbox);
  const isReady = await untilTooLate(clock, sandbox, async (late) => {
    try {
      return await serves(context, telling, exposedUrls, late);
    } finally {
      if (late.aborted) await telling.finish();
      else await telling.end();
    }
  });
  if (!isReady) return;
  const change = { now: clock.now(), detail: readyDetail(sandbox), exposedUrls };
  await recordMove(deps, telling.sandbox, 'ready', change, 'runtime');
}

/** Answers when it serves; false when the wait was left off. */
async function serves(context: StepContext, telling: ProgressReporter, urls: readonly ExposedUrl[], late: AbortSignal): Promise<boolean> {
  const { deps, run } = context;
  const { ready } = telling.sandbox.spec;
  const signal = unwanted(context, run.woken, telling.moved, late);
  try {
    await deps.probe.untilReady(ready, urls, signal, (miss) => telling.report(lastProbe(ready, miss)));
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

function readyDetail({ status }: Sandbox): string | null {
  if (status !== 'RESUMING') return null;
  return 'resumed: its processes were started again over the files that were kept';
}
