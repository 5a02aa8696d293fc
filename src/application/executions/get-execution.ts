import type { ExecutionRecord } from '../../domain/execution.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { ExecutionReconciler } from './execution-reconciler.ts';
import { type ExecutionRecordsDeps, getSandboxExecution } from './execution-records.ts';

export interface GetExecutionDeps extends ExecutionRecordsDeps {
  readonly reconciler: Pick<ExecutionReconciler, 'refresh'>;
}

/**
 * Returns the present state of the execution. Does not wake the sandbox. Throws `sandbox_not_found`, `execution_not_found`,
 * `runtime_unavailable` or `runtime_timeout`.
 */
export async function getExecution(deps: GetExecutionDeps, scope: OwnerScope, sandboxId: string, id: string): Promise<ExecutionRecord> {
  const { sandbox, execution } = await getSandboxExecution(deps, scope, sandboxId, id);
  return await deps.reconciler.refresh(execution, sandbox);
}
