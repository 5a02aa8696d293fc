import { Failure } from '../../domain/failure.ts';
import { stopFrozen, markDeleted, markRemoved, relocate, requeue, takeStartSlot } from '../../domain/sandbox-lifecycle.ts';
import type { SandboxStep } from '../../domain/sandbox-next-step.ts';
import type { PauseKind, Sandbox, ObservedSandbox } from '../../domain/sandbox.ts';
import { recordMove, writeMove } from './sandbox-records.ts';
import { awaitReadyStep, launchStep, resumeStep, takeStartSlotStep } from './sandbox-start-steps.ts';
import { type DecidedStep, type StepContext, revertOnFailure } from './step-context.ts';

/** Steps that act on the runtime are taken once in a run. What is still due afterwards waits for the next run. */
export const runtimeSteps: ReadonlySet<SandboxStep['kind']> = new Set(['launch', 'freeze', 'stop', 'resume', 'remove']);

/** Steps during which the run keeps its start slot. */
export const needsStartSlot: ReadonlySet<SandboxStep['kind']> = new Set(['launch', 'resume']);

/** When to try again to pause a sandbox that the runtime left running. */
const pauseRetryAfterSeconds = 5;

/** Takes the step. Returns the new state only if it is certain without a new inspect. Otherwise null. */
export async function takeStep(context: StepContext, step: DecidedStep, sandbox: Sandbox): Promise<ObservedSandbox | null> {
  const { deps } = context;
  const { store, runtime } = deps;
  const { observed } = step;
  const now = deps.clock.now();
  switch (step.kind) {
    case 'none':
      return observed;
    case 'record': {
      const change = { now, reason: step.reason, ...(step.pauseKind && { pauseKind: step.pauseKind }) };
      await recordMove(deps, sandbox, step.transition, change, step.by);
      return observed;
    }
    case 'stop-frozen':
      await writeMove(deps, sandbox, stopFrozen(sandbox, step.reason, now), step.by);
      return observed;
    case 'delete':
      await writeMove(deps, sandbox, markDeleted(sandbox, step.reason, now), 'skep');
      return observed;
    case 'mark-removed':
      await store.replace(markRemoved(sandbox, now));
      return observed;
    case 'relocate':
      await store.replace(relocate(sandbox, observed?.exposedUrls ?? [], now));
      return observed;
    case 'requeue':
      await store.replace(requeue(sandbox, step.reason, now));
      return observed;
    case 'begin':
      await store.replace(takeStartSlot(sandbox, now, { code: 'runtime_silent' }));
      return null;
    case 'take-start-slot':
      await takeStartSlotStep(context, sandbox);
      return null;
    case 'launch':
      return await launchStep(context, sandbox);
    case 'resume':
      return await resumeStep(context, sandbox, observed);
    case 'await-ready':
      await awaitReadyStep(context, sandbox, observed);
      return null;
    case 'freeze':
    case 'stop':
      return await pauseStep(context, step.kind, sandbox);
    case 'remove':
      await runtime.remove(sandbox.instanceId);
      return null;
  }
}

/** Freezes or stops the sandbox. If the runtime refuses, the sandbox is RUNNING again. */
async function pauseStep({ deps }: StepContext, kind: PauseKind, sandbox: Sandbox): Promise<ObservedSandbox> {
  const { runtime } = deps;
  return await revertOnFailure(deps, 'PAUSING', () => sandbox, async () => {
    const observed = await runtime[kind](sandbox.instanceId);
    if (observed.state !== 'running' || sandbox.status !== 'PAUSING') return observed;
    const reason = observed.reason ?? { code: 'pause_refused' };
    throw new Failure('runtime_unavailable', { runtime: runtime.name, reason, retryAfterSeconds: pauseRetryAfterSeconds });
  });
}
