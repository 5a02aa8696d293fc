import type { FileEntry } from '../../domain/file-entry.ts';
import { type Page, pageOf } from '../../domain/page.ts';
import { activityIntervalMs } from '../../domain/idle-policy.ts';
import type { OwnerScope } from '../../domain/principal.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { ByteRange, FileReading, WriteOptions } from '../../ports/sandbox-files.ts';
import type { CoreDeps } from '../core-deps.ts';
import { getSandbox, withRecordFailures } from '../sandboxes/sandbox-records.ts';
import { interval } from '../timers.ts';
import { bindUseCases, type Bound } from '../use-cases.ts';

/** Calls `read` with the sandbox's id in the runtime. Does not wake the sandbox or count as activity. */
async function readFiles<T>(
  { store }: CoreDeps, scope: OwnerScope, id: string, read: (instanceId: string) => Promise<T>,
): Promise<T> {
  const sandbox = await getSandbox(store, scope, id);
  return await withRecordFailures(sandbox, () => read(sandbox.instanceId));
}

/** Calls `change` with the sandbox's id in the runtime. Does not wake the sandbox, but counts as activity until it is done. */
async function changeFiles<T>(
  { store, clock }: CoreDeps, scope: OwnerScope, id: string, change: (instanceId: string) => Promise<T>,
): Promise<T> {
  const sandbox = await getSandbox(store, scope, id);
  const touch = async ({ id }: Sandbox): Promise<void> => await store.sandboxes.touch(id, clock.now());
  await touch(sandbox);
  // If the store fails now, the next interval tries again.
  using _ = interval(clock, activityIntervalMs(sandbox), () => void touch(sandbox).catch(() => {}));
  return await withRecordFailures(sandbox, () => change(sandbox.instanceId));
}

/**
 * Returns the entry at a path of the sandbox. Follows a link at the path itself only if `followLink` is true. Throws `sandbox_not_found`,
 * `file_not_found`, `wrong_file_type`, `invalid_request`, `sandbox_not_running`, `runtime_unavailable` or `runtime_timeout`.
 */
async function statFile(
  deps: CoreDeps, scope: OwnerScope, id: string, path: string, followLink: boolean, signal: AbortSignal,
): Promise<FileEntry> {
  return await readFiles(deps, scope, id, (instanceId) => deps.runtime.files.stat(instanceId, path, followLink, signal));
}

/**
 * Reads a file of the sandbox and follows links. Before it reads, it calls `choose` with the file's entry; `choose` returns the range to
 * read. Throws `sandbox_not_found`, `file_not_found`, `wrong_file_type`, `invalid_request`, `sandbox_not_running`, `runtime_unavailable`,
 * `runtime_timeout`, or the error of `choose`.
 */
async function readFile(
  deps: CoreDeps, scope: OwnerScope, id: string, path: string, choose: (file: FileEntry) => ByteRange, signal: AbortSignal,
): Promise<FileReading> {
  return await readFiles(deps, scope, id, (instanceId) => deps.runtime.files.read(instanceId, path, choose, signal));
}

/** Chooses the whole file. */
export function wholeFile({ size }: FileEntry): ByteRange {
  return { offset: 0, length: size };
}

/**
 * Writes a file of the sandbox atomically, and creates missing parent directories. Returns the written file. Counts as
 * activity. Throws `sandbox_not_found`, `wrong_file_type`, `invalid_request`, `sandbox_not_running`, `runtime_unavailable`,
 * `runtime_timeout`, or the error of the content stream.
 */
async function writeFile(
  deps: CoreDeps, scope: OwnerScope, id: string, path: string, content: ReadableStream<Uint8Array>, options: WriteOptions,
  signal: AbortSignal,
): Promise<FileEntry> {
  return await changeFiles(deps, scope, id, (instanceId) => deps.runtime.files.write(instanceId, path, content, options, signal));
}

/**
 * Removes a file, a link (not its target), or, if `recursive` is true, a directory with its content. Counts as activity. Throws
 * `sandbox_not_found`, `file_not_found`, `wrong_file_type` (a directory without `recursive`), `invalid_request`, `sandbox_not_running`,
 * `runtime_unavailable` or `runtime_timeout`.
 */
async function removeFile(
  deps: CoreDeps, scope: OwnerScope, id: string, path: string, recursive: boolean, signal: AbortSignal,
): Promise<void> {
  await changeFiles(deps, scope, id, (instanceId) => deps.runtime.files.remove(instanceId, path, recursive, signal));
}

/**
 * Moves a file, link or directory of the sandbox atomically. Replaces a file or link at the new path. Returns the moved entry. Counts as
 * activity. Throws `sandbox_not_found`, `file_not_found`, `wrong_file_type` (the new path is a directory), `invalid_request`,
 * `sandbox_not_running`, `runtime_unavailable` or `runtime_timeout`.
 */
async function moveFile(
  deps: CoreDeps, scope: OwnerScope, id: string, from: string, to: string, signal: AbortSignal,
): Promise<FileEntry> {
  const { files } = deps.runtime;
  return await changeFiles(deps, scope, id, async (instanceId) => {
    await files.move(instanceId, from, to, signal);
    return await files.stat(instanceId, to, false, signal);
  });
}

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
async function listDirectory(
  deps: CoreDeps, scope: OwnerScope, id: string, path: string, { depth, after, limit }: DirectoryRequest, signal: AbortSignal,
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

export interface CreatedDirectory {
  readonly directory: FileEntry;
  /** False if it already existed. */
  readonly isNew: boolean;
}

/**
 * Creates a directory in the sandbox, with missing parents. Counts as activity. Throws `sandbox_not_found`, `wrong_file_type`
 * (the path is no directory), `invalid_request`, `sandbox_not_running`, `runtime_unavailable` or `runtime_timeout`.
 */
async function makeDirectory(
  deps: CoreDeps, scope: OwnerScope, id: string, path: string, signal: AbortSignal,
): Promise<CreatedDirectory> {
  const { files } = deps.runtime;
  return await changeFiles(deps, scope, id, async (instanceId) => {
    const isNew = await files.makeDirectory(instanceId, path, signal);
    return { directory: await files.stat(instanceId, path, true, signal), isNew };
  });
}

/**
 * Returns a tar of a file or directory of the sandbox. Names begin with the last segment of its path. Throws `sandbox_not_found`,
 * `file_not_found`, `invalid_request`, `sandbox_not_running`, `runtime_unavailable` or `runtime_timeout`.
 */
async function readArchive(
  deps: CoreDeps, scope: OwnerScope, id: string, path: string, signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  return await readFiles(deps, scope, id, (instanceId) => deps.runtime.getFiles(instanceId, path, signal));
}

/**
 * Unpacks a tar into a directory of the sandbox. Creates the directory if it is missing. A failure may leave a part unpacked. Counts as
 * activity. Throws `sandbox_not_found`, `invalid_request` (the path or the archive), `sandbox_not_running`, `runtime_unavailable`,
 * `runtime_timeout`, or the error of the archive stream.
 */
async function writeArchive(
  deps: CoreDeps, scope: OwnerScope, id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal,
): Promise<void> {
  await changeFiles(deps, scope, id, (instanceId) => deps.runtime.putFiles(instanceId, directory, archive, signal));
}

const useCases = {
  stat: statFile,
  read: readFile,
  write: writeFile,
  remove: removeFile,
  move: moveFile,
  list: listDirectory,
  makeDirectory,
  readArchive,
  writeArchive,
};

/**
 * The use cases of files in sandboxes. Each takes the caller's scope; sandboxes outside the scope are not found. They do not wake the
 * sandbox. If it is paused and its runtime cannot reach the files then, they throw `sandbox_not_running`.
 */
export type Files = Bound<typeof useCases>;

export function createFiles(deps: CoreDeps): Files {
  return bindUseCases(deps, useCases);
}
