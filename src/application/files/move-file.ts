import type { FileEntry } from '../../domain/file-entry.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import { changeFiles, type FileDeps } from './file-access.ts';

/**
 * Moves a file, link or directory of the sandbox atomically. Replaces a file or link at the new path. Returns the moved entry. Counts as
 * activity. Throws `sandbox_not_found`, `file_not_found`, `wrong_file_type` (the new path is a directory), `invalid_request`,
 * `sandbox_not_running`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function moveFile(
  deps: FileDeps, scope: OwnerScope, id: string, from: string, to: string, signal: AbortSignal,
): Promise<FileEntry> {
  const { files } = deps.runtime;
  return await changeFiles(deps, scope, id, async (instanceId) => {
    await files.move(instanceId, from, to, signal);
    return await files.stat(instanceId, to, false, signal);
  });
}
