import type { ExecutionRecord } from '../../domain/execution.ts';
import { Failure } from '../../domain/failure.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { ExecutionStore } from '../../ports/execution-store.ts';
import type { SandboxExecutions } from '../../ports/sandbox-executions.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import { getSandbox } from '../sandboxes/sandbox-records.ts';

/** The deps that the use cases and the reconciler of executions share. */
export interface ExecutionDeps {
  readonly executionStore: ExecutionStore;
  readonly sandboxStore: SandboxStore;
  readonly sandboxExecutions: SandboxExecutions;
}

/** An execution and the sandbox that it runs in. */
export interface SandboxExecution {
  readonly sandbox: Sandbox;
  readonly execution: ExecutionRecord;
}

/** Returns the execution. Throws `sandbox_not_found`, or `execution_not_found` if it is not in the sandbox or is deleted. */
export async function getSandboxExecution(
  { executionStore, sandboxStore }: ExecutionDeps, scope: OwnerScope, sandboxId: string, id: string,
): Promise<SandboxExecution> {
  const sandbox = await getSandbox(sandboxStore, scope, sandboxId);
  const execution = await executionStore.find(id);
  if (execution?.sandboxId !== sandbox.id || execution.deletedAt !== null) throw new Failure('execution_not_found', { id });
  return { sandbox, execution };
}
