import type { FileEntry } from '../../domain/file-entry.ts';
import { type Page, pageOf } from '../../domain/page.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import { type FileDeps, readFiles } from './file-access.ts';

export interface DirectoryRequest {
  /** 1: only the entries of the directory; 2: also the entries of its subdirectories; and so on. */
  readonly depth: number;
  /** The path of the last entry of the previous page. Null for the first page. */
  readonly after: string | null;
  /** The maximum number of entries. */
  readonly limit: number;
}

/**
 * Returns a page of entries of a directory in the sandbox, ordered by path. Each page reads the directory anew. Throws `sandbox_not_found`,
 * `file_not_found`, `wrong_file_type`, `invalid_request`, `sandbox_not_running`, `runtime_unavailable` or `runtime_timeout`.
 */
export async function listDirectory(
  deps: FileDeps, scope: OwnerScope, id: string, path: string, { depth, after, limit }: DirectoryRequest, signal: AbortSignal,
): Promise<Page<FileEntry>> {
  const wanted = limit + 1;
  return await readFiles(deps, scope, id, async (instanceId) => {
    let first: FileEntry[] = [];
    for await (const entry of deps.runtime.files.list(instanceId, path, depth, signal)) {
      if (after !== null && entry.path <= after) continue;
      first.push(entry);
      // Keeps only a few pages in memory, however large the directory is.
      if (first.length >= wanted * 4) first = firstOf(first, wanted);
    }
    return pageOf(firstOf(first, wanted), limit, (entry) => ({ value: 0, id: entry.path }));
  });
}

function firstOf(entries: readonly FileEntry[], count: number): FileEntry[] {
  return entries.toSorted((a, b) => (a.path < b.path ? -1 : Number(a.path > b.path))).slice(0, count);
}
