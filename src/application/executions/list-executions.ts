import type { ExecutionRecord } from '../../domain/execution.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import { getSandbox } from '../sandboxes/sandbox-records.ts';
import type { ExecutionRecordsDeps } from './execution-records.ts';

/**
 * Returns the executions of the sandbox, newest first. Reads the store only, so the output sizes of a running execution are the last known
 * ones. Throws `sandbox_not_found`.
 */
export async function listExecutions(
  { store, sandboxes }: ExecutionRecordsDeps, scope: OwnerScope, sandboxId: string, page: PageRequest,
): Promise<Page<ExecutionRecord>> {
  const { id } = await getSandbox(sandboxes, scope, sandboxId);
  return await store.list(id, page);
}
