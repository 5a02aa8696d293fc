import type { ExecutionRecord } from '../../domain/execution.ts';
import { Failure } from '../../domain/failure.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { CoreDeps } from '../core-deps.ts';
import { getSandbox } from '../sandboxes/sandbox-records.ts';

/** An execution and the sandbox that it runs in. */
export interface SandboxExecution {
  readonly sandbox: Sandbox;
  readonly execution: ExecutionRecord;
}

/** Returns the execution. Throws `sandbox_not_found`, or `execution_not_found` if it is not in the sandbox or is deleted. */
export async function getSandboxExecution(
  { store }: CoreDeps, scope: OwnerScope, sandboxId: string, id: string,
): Promise<SandboxExecution> {
  const sandbox = await getSandbox(store, scope, sandboxId);
  const execution = await store.executions.find(id);
  if (execution?.sandboxId !== sandbox.id || execution.deletedAt !== null) throw new Failure('execution_not_found', { id });
  return { sandbox, execution };
}
