import { Failure } from '../../domain/failure.ts';
import { isEnding } from '../../domain/reason.ts';
import type { SandboxStep } from '../../domain/sandbox-next-step.ts';
import type { PauseKind, Sandbox, ObservedSandbox } from '../../domain/sandbox.ts';
import { maskUrlPasswords } from '../../domain/credentials.ts';
import { redactorOf } from '../agents/secret-redactor.ts';
import { endOfLog } from './read-logs.ts';
import { writeMove } from './sandbox-records.ts';
import { awaitReadyStep, launchStep, resumeStep, takeStartSlotStep } from './sandbox-start-steps.ts';
import { type DecidedStep, revertOnFailure, type SandboxReconcilerDeps, type StepContext, unwanted } from './sandbox-step-context.ts';

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
  switch (step.kind) {
    case 'none':
      return observed;
    case 'write':
      if (step.by === null) await store.replace(step.to);
      else await writeMove(deps, sandbox, await withEnding(deps, sandbox, step.to, observed), step.by);
      return observed;
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
async function pauseStep(context: StepContext, kind: PauseKind, sandbox: Sandbox): Promise<ObservedSandbox> {
  const { deps } = context;
  const { runtime } = deps;
  // One that is frozen and is to be stopped is PAUSED already, and nothing can run in it.
  if (sandbox.status === 'PAUSING') await deps.keepChanges(sandbox.id, unwanted(context));
  return await revertOnFailure(deps, 'PAUSING', () => sandbox, async () => {
    const observed = await runtime[kind](sandbox.instanceId);
    if (observed.state !== 'running' && (kind === 'freeze' || observed.state !== 'frozen')) return observed;
    const reason = observed.reason ?? { code: 'pause_refused' };
    throw new Failure('runtime_unavailable', { runtime: runtime.name, reason, retryAfterSeconds: pauseRetryAfterSeconds });
  });
}

/** Returns the changed record. If its processes have failed, the reason says in which phase, and what they wrote last. */
async function withEnding(
  deps: SandboxReconcilerDeps, from: Sandbox, to: Sandbox, observed: ObservedSandbox | null,
): Promise<Sandbox> {
  const { secrets, logger } = deps;
  const { statusReason: reason } = to;
  if (to.status !== 'ERROR' || from.status === 'ERROR' || reason === null || !isEnding(reason)) return to;
  const phase = from.status === 'STARTING' ? 'starting' : from.status === 'RESUMING' ? 'resuming' : 'running';
  let output = '';
  try {
    if (observed !== null && observed.state !== 'absent') output = await endOfLog(deps, from.instanceId);
  } catch (error) {
    // The failure itself is recorded all the same.
    logger.warn({ sandbox: from.id, error }, 'the last output of a sandbox could not be read');
  }
  const shown = maskUrlPasswords(redactorOf(from, secrets).tail(output));
  return { ...to, statusReason: { ...reason, phase, ...(shown !== '' && { output: shown }) } };
}
