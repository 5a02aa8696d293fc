import type { FileEntry } from '../../domain/file-entry.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { ByteRange, FileReading } from '../../ports/sandbox-files.ts';
import { type FileDeps, readFiles } from './file-access.ts';

/**
 * Reads a file of the sandbox, links followed. `choose` is called with what is there, before anything is read, and returns the part to
 * read. Throws `sandbox_not_found`, `file_not_found`, `wrong_file_type`, `invalid_request`, `sandbox_not_running`, `runtime_unavailable`,
 * `runtime_timeout`, or what `choose` throws.
 */
export async function readFile(
  deps: FileDeps, scope: OwnerScope, id: string, path: string, choose: (file: FileEntry) => ByteRange, signal: AbortSignal,
): Promise<FileReading> {
  return await readFiles(deps, scope, id, (instanceId) => deps.runtime.files.read(instanceId, path, choose, signal));
}

/** Chooses all of a file. */
export function wholeFile({ size }: FileEntry): ByteRange {
  return { offset: 0, length: size };
}
