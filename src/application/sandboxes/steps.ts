import { deepen, markDeleted, markRemoved, relocate, requeue, takeTurn } from '../../domain/sandbox-lifecycle.ts';
import type { Step } from '../../domain/sandbox-next-step.ts';
import type { Sandbox, SandboxFact } from '../../domain/sandbox.ts';
import { awaitReadyStep } from './await-ready.ts';
import { launchStep, resumeStep } from './launch.ts';
import { restStep } from './rest-step.ts';
import type { DrivenStep, StepContext } from './step-context.ts';
import { takeTurnStep } from './turn.ts';
import { recordMove, writeMove } from './writes.ts';

/** Steps that act on the runtime are taken once a drive; what is still due afterwards waits for the next one. */
export const acts: ReadonlySet<Step['kind']> = new Set(['launch', 'freeze', 'stop', 'resume', 'remove']);

/** Steps that need the turn which the drive has. */
export const needsTurn: ReadonlySet<Step['kind']> = new Set(['launch', 'resume']);

/** Takes the step; answers with the fact where it is known afterwards. */
export async function takeStep(context: StepContext, step: DrivenStep, sandbox: Sandbox): Promise<SandboxFact | null> {
  const { parts } = context;
  const { store, runtime } = parts;
  const now = parts.clock.now();
  switch (step.kind) {
    case 'none':
      return step.fact;
    case 'record':
      await recordMove(parts, sandbox, step.event, { now, detail: step.detail, ...(step.pauseKind && { pauseKind: step.pauseKind }) }, step.by);
      return step.fact;
    case 'deepen':
      await writeMove(parts, sandbox, deepen(sandbox, step.detail, now), step.by);
      return step.fact;
    case 'delete':
      await writeMove(parts, sandbox, markDeleted(sandbox, step.detail, now), 'skep');
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
      await store.replace(takeTurn(sandbox, now, 'its runtime does not answer'));
      return null;
    case 'take-turn':
      await takeTurnStep(context, sandbox);
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
