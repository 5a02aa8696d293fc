import type { ExecutionRecord } from '../../domain/execution.ts';
import { Failure, isFailure } from '../../domain/failure.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { ExecutionStore } from '../../ports/execution-store.ts';
import type { SandboxExecutions } from '../../ports/sandbox-executions.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import { getSandbox } from '../sandboxes/sandbox-records.ts';

export interface ExecutionRecordsDeps {
  readonly store: ExecutionStore;
  readonly sandboxes: SandboxStore;
  readonly executions: SandboxExecutions;
}

/** An execution and the sandbox that it runs in. */
export interface SandboxExecution {
  readonly sandbox: Sandbox;
  readonly execution: ExecutionRecord;
}

/** Returns the execution. Throws `sandbox_not_found`, or `execution_not_found` if it is not in the sandbox or is deleted. */
export async function getSandboxExecution(
  { store, sandboxes }: ExecutionRecordsDeps, scope: OwnerScope, sandboxId: string, id: string,
): Promise<SandboxExecution> {
  const sandbox = await getSandbox(sandboxes, scope, sandboxId);
  const execution = await store.find(id);
  if (execution?.sandboxId !== sandbox.id || execution.deletedAt !== null) throw new Failure('execution_not_found', { id });
  return { sandbox, execution };
}

/**
 * Does the work on the runtime. Failures get the id and status from the record. If the record says RUNNING but the sandbox does not run,
 * the failure says PAUSED. If the runtime does not have the sandbox, it says MISSING, unless the sandbox still starts.
 */
export async function withRecordFailures<T>({ id, status }: Sandbox, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isFailure(error)) throw error;
    if (error.code === 'sandbox_not_running') {
      throw new Failure('sandbox_not_running', { id, status: status === 'RUNNING' ? 'PAUSED' : status }, { cause: error });
    }
    if (error.code === 'sandbox_not_found') {
      throw new Failure('sandbox_not_running', { id, status: status === 'STARTING' ? status : 'MISSING' }, { cause: error });
    }
    throw error;
  }
}
