import type { OwnerScope } from '../../domain/principal.ts';
import { changeFiles, type FileDeps } from './file-access.ts';

/**
 * Removes a file, a link (not its target), or, if `recursive` is true, a directory with its content. Counts as activity. Throws
 * `sandbox_not_found`, `file_not_found`, `wrong_file_type` (a directory without `recursive`), `invalid_request`, `sandbox_not_running`,
 * `runtime_unavailable` or `runtime_timeout`.
 */
export async function removeFile(
  deps: FileDeps, scope: OwnerScope, id: string, path: string, recursive: boolean, signal: AbortSignal,
): Promise<void> {
  await changeFiles(deps, scope, id, (instanceId) => deps.runtime.files.remove(instanceId, path, recursive, signal));
}
