import { Failure } from '../../domain/failure.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { Clock } from '../../ports/clock.ts';
import { getSandbox } from '../sandboxes/sandbox-records.ts';
import { waitAtMost } from '../timers.ts';
import type { ExecutionReconciler } from './execution-reconciler.ts';
import type { ExecutionRecordsDeps } from './execution-records.ts';

export interface DeleteExecutionDeps extends ExecutionRecordsDeps {
  readonly reconciler: Pick<ExecutionReconciler, 'delete' | 'remove'>;
  readonly clock: Clock;
  /** How long to wait for the runtime, in milliseconds. */
  readonly answerWithinMs: number;
}

/**
 * Ends the execution with all its processes, and deletes its record and output. Afterwards no caller sees it. If the runtime does not
 * answer, it is removed there later. Idempotent. Throws `sandbox_not_found`, or `execution_not_found` if it never existed.
 */
export async function deleteExecution(deps: DeleteExecutionDeps, scope: OwnerScope, sandboxId: string, id: string): Promise<void> {
  const { store, sandboxes, reconciler, clock, answerWithinMs } = deps;
  const sandbox = await getSandbox(sandboxes, scope, sandboxId);
  const execution = await store.find(id);
  if (execution?.sandboxId !== sandbox.id) throw new Failure('execution_not_found', { id });
  await reconciler.delete(execution);
  await waitAtMost(clock, answerWithinMs, reconciler.remove(id));
}
