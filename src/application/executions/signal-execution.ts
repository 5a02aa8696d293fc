import type { OwnerScope } from '../../domain/principal.ts';
import { type ExecutionRecordsDeps, getSandboxExecution, withRecordFailures } from './execution-records.ts';

/**
 * Sends a signal (`SIGINT`) to the process group of the execution. Does nothing if it has ended. Throws `sandbox_not_found`,
 * `execution_not_found`, `sandbox_not_running`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function signalExecution(
  deps: ExecutionRecordsDeps, scope: OwnerScope, sandboxId: string, id: string, signalName: string,
): Promise<void> {
  const { sandbox, execution } = await getSandboxExecution(deps, scope, sandboxId, id);
  if (execution.status !== 'running') return;
  await withRecordFailures(sandbox, () => deps.executions.signal(sandbox.instanceId, id, signalName));
}
