import type { FileEntry } from '../../domain/file-entry.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { WriteOptions } from '../../ports/sandbox-files.ts';
import { changeFiles, type FileDeps } from './file-access.ts';

/**
 * Writes a file of the sandbox atomically, and creates missing parent directories. Returns the written file. Counts as
 * activity. Throws `sandbox_not_found`, `wrong_file_type`, `invalid_request`, `sandbox_not_running`, `runtime_unavailable`,
 * `runtime_timeout`, or the error of the content stream.
 */
export async function writeFile(
  deps: FileDeps, scope: OwnerScope, id: string, path: string, content: ReadableStream<Uint8Array>, options: WriteOptions,
  signal: AbortSignal,
): Promise<FileEntry> {
  return await changeFiles(deps, scope, id, (instanceId) => deps.runtime.files.write(instanceId, path, content, options, signal));
}
