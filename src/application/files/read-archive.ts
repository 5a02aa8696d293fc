import type { OwnerScope } from '../../domain/principal.ts';
import { type FileDeps, readFiles } from './file-access.ts';

/**
 * Returns a tar of a file or directory of the sandbox. Names begin with the last segment of its path. Throws `sandbox_not_found`,
 * `file_not_found`, `invalid_request`, `sandbox_not_running`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function readArchive(
  deps: FileDeps, scope: OwnerScope, id: string, path: string, signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  return await readFiles(deps, scope, id, (instanceId) => deps.runtime.getFiles(instanceId, path, signal));
}
