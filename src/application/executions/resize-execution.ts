import type { OwnerScope } from '../../domain/principal.ts';
import type { TerminalSize } from '../../ports/sandbox-executions.ts';
import { type ExecutionRecordsDeps, getSandboxExecution, withRecordFailures } from './execution-records.ts';

/**
 * Changes the size of the execution's terminal. Does nothing if it has no terminal or has ended. Throws `sandbox_not_found`,
 * `execution_not_found`, `sandbox_not_running`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function resizeExecution(
  deps: ExecutionRecordsDeps, scope: OwnerScope, sandboxId: string, id: string, size: TerminalSize,
): Promise<void> {
  const { sandbox, execution } = await getSandboxExecution(deps, scope, sandboxId, id);
  if (execution.status !== 'running' || !execution.tty) return;
  await withRecordFailures(sandbox, () => deps.executions.resize(sandbox.instanceId, id, size));
}
