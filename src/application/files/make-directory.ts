import type { FileEntry } from '../../domain/file-entry.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import { changeFiles, type FileDeps } from './file-access.ts';

export interface MadeDirectory {
  readonly directory: FileEntry;
  /** False if it already existed. */
  readonly isNew: boolean;
}

/**
 * Creates a directory in the sandbox, with missing parents. Counts as activity. Throws `sandbox_not_found`, `wrong_file_type`
 * (the path is no directory), `invalid_request`, `sandbox_not_running`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function makeDirectory(
  deps: FileDeps, scope: OwnerScope, id: string, path: string, signal: AbortSignal,
): Promise<MadeDirectory> {
  const { files } = deps.runtime;
  return await changeFiles(deps, scope, id, async (instanceId) => {
    const isNew = await files.makeDirectory(instanceId, path, signal);
    return { directory: await files.stat(instanceId, path, true, signal), isNew };
  });
}
