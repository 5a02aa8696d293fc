import type { FileEntry } from '../../domain/file-entry.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { ByteRange, FileReading } from '../../ports/sandbox-files.ts';
import { type FileDeps, readFiles } from './file-access.ts';

/**
 * Reads a file of the sandbox and follows links. Before it reads, it calls `choose` with the file's entry; `choose` returns the range to
 * read. Throws `sandbox_not_found`, `file_not_found`, `wrong_file_type`, `invalid_request`, `sandbox_not_running`, `runtime_unavailable`,
 * `runtime_timeout`, or the error of `choose`.
 */
export async function readFile(
  deps: FileDeps, scope: OwnerScope, id: string, path: string, choose: (file: FileEntry) => ByteRange, signal: AbortSignal,
): Promise<FileReading> {
  return await readFiles(deps, scope, id, (instanceId) => deps.runtime.files.read(instanceId, path, choose, signal));
}

/** Chooses the whole file. */
export function wholeFile({ size }: FileEntry): ByteRange {
  return { offset: 0, length: size };
}
