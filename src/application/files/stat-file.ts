import type { FileEntry } from '../../domain/file-entry.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import { type FileDeps, readFiles } from './file-access.ts';

/**
 * Returns the entry at a path of the sandbox. Follows a link at the path itself only if `followLink` is true. Throws `sandbox_not_found`,
 * `file_not_found`, `wrong_file_type`, `invalid_request`, `sandbox_not_running`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function statFile(
  deps: FileDeps, scope: OwnerScope, id: string, path: string, followLink: boolean, signal: AbortSignal,
): Promise<FileEntry> {
  return await readFiles(deps, scope, id, (instanceId) => deps.runtime.files.stat(instanceId, path, followLink, signal));
}
