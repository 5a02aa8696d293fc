import { z } from 'zod';
import type { DatedFile, DirectoryListing, FileQuery } from '../../ports/git-provider.ts';
import type { JsonCache } from './listing-caches.ts';
import { Oid } from './response-fields.ts';

/** A repository, and the head of its default branch. */
export type Head = z.infer<typeof Head>;
const Head = z.object({
  /** The repository's id in the host's API: `owner/name`, or a number. */
  id: z.union([z.string(), z.number()]),
  /** The last segment of the repository's actual path. */
  name: z.string().min(1),
  /** Null if the repository is empty. */
  commit: z.string().nullable(),
  /** The entity tag of the response that named the commit, if it is known. */
  etag: z.string().nullable(),
});

/** A regular file. */
export type CachedFile = Readonly<z.infer<typeof CachedFile>>;
const CachedFile = z.object({
  /** Relative to the repository's root. */
  path: z.string(),
  blobId: Oid,
  /** In milliseconds. Null if it is not known. */
  createdAt: z.number().nullable(),
});

export type TreeFile = Omit<CachedFile, 'createdAt'>;

export interface Opened {
  readonly head: Head;
  readonly directory: string;
  readonly files: readonly CachedFile[];
}

/** A directory at the head, without dates. */
export interface OpenedTree extends Omit<Opened, 'files'> {
  readonly files: readonly TreeFile[];
  /** Resolves to true if the commit of the last listing is part of the head's history. */
  descends(signal: AbortSignal): Promise<boolean>;
}

export interface OpenRequest {
  readonly repository: string;
  readonly head: Head | null;
  /** The commit of the last listing. */
  readonly earlier: string | null;
  /** The directory to list, given the last segment of the repository's actual path. */
  readonly directoryOf: (name: string) => string;
}

/** Reads the directories of one host. Throws the failures of the port. */
export interface ListingSource {
  /** Returns the head if one request and the cached head are enough. Null if `open` is needed. */
  readHead(repository: string, last: Head | null, signal: AbortSignal): Promise<Head | null>;
  open(request: OpenRequest, signal: AbortSignal): Promise<OpenedTree>;
  /** Adds the dates of the files' first commits to `dates`, in milliseconds, as they are found. A file without a date is left out. */
  addDates(head: Head, commit: string, paths: readonly string[], dates: Map<string, number>, signal: AbortSignal): Promise<void>;
}

/** Returns the prefix of all paths below a directory. */
export function prefixOf(directory: string): string {
  return directory === '' ? '' : `${directory}/`;
}

/**
 * Returns an equal query that calls the caller's functions once for each name and path, as the port promises. A listing needs their results
 * more than once.
 */
export function memoized(query: FileQuery): FileQuery {
  return { directory: memoize((name) => query.directory(name)), accepts: memoize((path) => query.accepts(path)) };
}

function memoize<T>(compute: (text: string) => T): (text: string) => T {
  const values = new Map<string, T>();
  return (text) => {
    const value = values.get(text) ?? compute(text);
    values.set(text, value);
    return value;
  };
}

/** Returns the caller's part of a listing. Null if the listing was made for another caller and does not have all of it. */
export function selectFiles({ head, directory, files }: Opened, query: FileQuery): DirectoryListing | null {
  if (query.directory(head.name) !== directory) return null;
  const wanted: DatedFile[] = [];
  for (const { path, blobId, createdAt } of files.filter(isWanted(query, directory))) {
    if (createdAt === null) return null;
    wanted.push({ path, blobId, createdAt });
  }
  return { directory, files: wanted };
}

function isWanted(query: FileQuery, directory: string): (file: TreeFile) => boolean {
  return ({ path }) => query.accepts(path.slice(prefixOf(directory).length));
}

type CachedFilesOf = (commit: string, directory: string) => Promise<readonly CachedFile[] | null>;

/** A file with the same content as in an earlier commit keeps its date, if the head descends from that commit. */
async function openTree(source: ListingSource, cachedFiles: CachedFilesOf, request: OpenRequest, signal: AbortSignal): Promise<Opened> {
  const { earlier } = request;
  const tree = await source.open(request, signal);
  const { head, directory, files } = tree;
  const undated = { head, directory, files: inheritDates(files, []) };
  if (head.commit === null) return undated;
  const known = await cachedFiles(head.commit, directory);
  if (known !== null) return { head, directory, files: inheritDates(files, known) };
  const before = earlier === null ? null : await cachedFiles(earlier, directory);
  const dated = { head, directory, files: inheritDates(files, before ?? []) };
  const isUseful = dated.files.some(({ createdAt }) => createdAt !== null);
  return isUseful && (await tree.descends(signal)) ? dated : undated;
}

function inheritDates(files: readonly TreeFile[], before: readonly CachedFile[]): CachedFile[] {
  const byPath = new Map(before.map((file) => [file.path, file]));
  return files.map((file) => {
    const known = byPath.get(file.path);
    return { ...file, createdAt: known?.blobId === file.blobId ? known.createdAt : null };
  });
}

const CachedHead = z.object({ version: z.literal(1), head: Head });
const CachedFiles = z.object({ version: z.literal(3), files: z.array(CachedFile) });

/** Requests only data that is not in the cache. */
export function createIncrementalListing(source: ListingSource, cache: JsonCache) {
  /** The files depend only on the commit, not on the repository. */
  const cachedFiles: CachedFilesOf = async (commit, directory) =>
    (await cache.get(`files ${commit} ${directory}`, CachedFiles))?.files ?? null;

  async function openCached(head: Head, query: FileQuery): Promise<Opened | null> {
    const directory = query.directory(head.name);
    const files = head.commit === null ? [] : await cachedFiles(head.commit, directory);
    return files === null ? null : { head, directory, files };
  }

  /** The dates that were found are cached even if a request fails, so that the next listing continues from there. */
  async function addDates(opened: Opened, paths: readonly string[], signal: AbortSignal): Promise<Opened> {
    const { head, directory, files } = opened;
    const { commit } = head;
    if (commit === null) return opened;
    const dates = new Map<string, number>();
    const dated = (): CachedFile[] => files.map((file) => ({ ...file, createdAt: file.createdAt ?? dates.get(file.path) ?? null }));
    const put = (known: CachedFile[]): Promise<void> => cache.put(`files ${commit} ${directory}`, { version: 3, files: known });
    try {
      if (paths.length > 0) await source.addDates(head, commit, paths, dates, signal);
    } catch (error) {
      await put(dated());
      throw error;
    }
    const undatable = new Set(paths.filter((path) => !dates.has(path)));
    const datable = dated().filter(({ path }) => !undatable.has(path));
    await put(datable);
    return { head, directory, files: datable };
  }

  return {
    async list(repository: string, query: FileQuery, signal: AbortSignal): Promise<Opened> {
      const last = (await cache.get(`repository ${repository}`, CachedHead))?.head ?? null;
      const current = await source.readHead(repository, last, signal);
      const cached = current === null ? null : await openCached(current, query);
      const directoryOf = (name: string): string => query.directory(name);
      const request = { repository, head: current, earlier: last?.commit ?? null, directoryOf };
      const opened = cached ?? (await openTree(source, cachedFiles, request, signal));
      const { head, directory, files } = opened;
      const undated = files.filter(({ createdAt }) => createdAt === null).filter(isWanted(query, directory)).map(({ path }) => path);
      const listed = undated.length === 0 && cached !== null ? opened : await addDates(opened, undated, signal);
      const isSame = JSON.stringify(head) === JSON.stringify(last);
      if (!isSame) await cache.put(`repository ${repository}`, { version: 1, head });
      return listed;
    },
  };
}
