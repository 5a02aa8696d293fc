import type { OwnerScope } from '../../domain/principal.ts';
import { changeFiles, type FileDeps } from './file-access.ts';

/**
 * Unpacks a tar below a directory of the sandbox, which is made if it is not there. Part of it may be unpacked if it fails. That counts as
 * activity. Throws `sandbox_not_found`, `invalid_request` (the path or the archive), `sandbox_not_running`, `runtime_unavailable`,
 * `runtime_timeout`, or what the archive fails with.
 */
export async function writeArchive(
  deps: FileDeps, scope: OwnerScope, id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal,
): Promise<void> {
  await changeFiles(deps, scope, id, (instanceId) => deps.runtime.putFiles(instanceId, directory, archive, signal));
}
