import type { OwnerScope } from '../../domain/principal.ts';
import { changeFiles, type FileDeps } from './file-access.ts';

/**
 * Unpacks a tar into a directory of the sandbox. Creates the directory if it is missing. A failure may leave a part unpacked. Counts as
 * activity. Throws `sandbox_not_found`, `invalid_request` (the path or the archive), `sandbox_not_running`, `runtime_unavailable`,
 * `runtime_timeout`, or the error of the archive stream.
 */
export async function writeArchive(
  deps: FileDeps, scope: OwnerScope, id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal,
): Promise<void> {
  await changeFiles(deps, scope, id, (instanceId) => deps.runtime.putFiles(instanceId, directory, archive, signal));
}
