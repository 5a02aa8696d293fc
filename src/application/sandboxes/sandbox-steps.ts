import { type AnyFailure, Failure } from '../../domain/failure.ts';
import { stopFrozen, markDeleted, markRemoved, relocate, requeue, takeStartSlot } from '../../domain/sandbox-lifecycle.ts';
import type { SandboxStep } from '../../domain/sandbox-next-step.ts';
import type { PauseKind, Sandbox, ObservedSandbox } from '../../domain/sandbox.ts';
import { recordMove, writeMove } from './sandbox-writes.ts';
import { awaitReadyStep, launchStep, resumeStep, takeStartSlotStep } from './start-steps.ts';
import { type DecidedStep, type StepContext, revertOnFailure } from './step-context.ts';

/** Steps that act on the runtime are taken once a drive; what is still due afterwards waits for the next one. */
export const acts: ReadonlySet<SandboxStep['kind']> = new Set(['launch', 'freeze', 'stop', 'resume', 'remove']);

/** Steps that need the turn which the drive has. */
export const needsStartSlot: ReadonlySet<SandboxStep['kind']> = new Set(['launch', 'resume']);

/** Takes the step; answers with the fact where it is known afterwards. */
export async function takeStep(context: StepContext, step: DecidedStep, sandbox: Sandbox): Promise<ObservedSandbox | null> {
  const { deps } = context;
  const { store, runtime } = deps;
  const now = deps.clock.now();
  switch (step.kind) {
    case 'none':
      return step.fact;
    case 'record':
      await recordMove(deps, sandbox, step.event, { now, detail: step.detail, ...(step.pauseKind && { pauseKind: step.pauseKind }) }, step.by);
      return step.fact;
    case 'deepen':
      await writeMove(deps, sandbox, stopFrozen(sandbox, step.detail, now), step.by);
      return step.fact;
    case 'delete':
      await writeMove(deps, sandbox, markDeleted(sandbox, step.detail, now), 'skep');
      return step.fact;
    case 'forget':
      await store.replace(markRemoved(sandbox, now));
      return step.fact;
    case 'relocate':
      await store.replace(relocate(sandbox, step.fact?.exposedUrls ?? [], now));
      return step.fact;
    case 'requeue':
      await store.replace(requeue(sandbox, step.detail, now));
      return step.fact;
    case 'begin':
      await store.replace(takeStartSlot(sandbox, now, 'its runtime does not answer'));
      return null;
    case 'take-turn':
      await takeStartSlotStep(context, sandbox);
      return null;
    case 'launch':
      return await launchStep(context, sandbox);
    case 'resume':
      return await resumeStep(context, sandbox, step.fact);
    case 'await-ready':
      await awaitReadyStep(context, sandbox, step.fact);
      return null;
    case 'freeze':
    case 'stop':
      return await restStep(context, step.kind, sandbox);
    case 'remove':
      await runtime.remove(sandbox.instanceId);
      return null;
  }
}

/** Puts the sandbox into the tier of rest; a pause that the runtime refuses is taken back. */
async function restStep({ deps }: StepContext, kind: PauseKind, sandbox: Sandbox): Promise<ObservedSandbox> {
  const { runtime } = deps;
  const act = async (): Promise<ObservedSandbox> => {
    const fact = await runtime[kind](sandbox.instanceId);
    if (fact.state === 'running' && sandbox.status === 'PAUSING') throw refusal(runtime.name, fact);
    return fact;
  };
  return await revertOnFailure(deps, 'PAUSING', () => sandbox, act);
}

function refusal(runtime: string, { detail }: ObservedSandbox): AnyFailure {
  return new Failure('runtime_unavailable', { runtime, reason: detail ?? 'it left the sandbox running', retryAfterSeconds: 5 });
}
