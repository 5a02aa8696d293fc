import { z } from 'zod';
import type { DatedFile, DirectoryListing, FileQuery } from '../../ports/git-provider.ts';
import type { JsonCache } from './listing-caches.ts';
import { Oid } from './response-fields.ts';

/** A repository, and the head of its default branch. */
export interface Head {
  /** What the host's API needs to address the repository: `owner/name`, or a number. */
  readonly id: string | number;
  /** The last segment of the repository's actual path. */
  readonly name: string;
  /** Null if the repository is empty. */
  readonly commit: string | null;
  /** The entity tag of the response that named the commit. Null if it is not known. */
  readonly etag: string | null;
}

/** A regular file. */
export interface TreeFile {
  /** Relative to the repository's root. */
  readonly path: string;
  readonly blobId: string;
}

export interface CachedFile extends TreeFile {
  /** In milliseconds. Null if it is not known. */
  readonly createdAt: number | null;
}

export interface Opened {
  readonly head: Head;
  readonly directory: string;
  readonly files: readonly CachedFile[];
}

/** All regular files below a directory at the head, without dates. */
export interface OpenedTree extends Omit<Opened, 'files'> {
  readonly files: readonly TreeFile[];
  /**
   * Resolves to true if the commit `earlier` of the request is part of the head's history. Resolves to false if the host cannot tell,
   * because a wrong true would give files the dates of another history. Not called if `earlier` is null.
   */
  descends(signal: AbortSignal): Promise<boolean>;
}

export interface OpenRequest {
  readonly repository: string;
  /** What `readHead` returned. */
  readonly head: Head | null;
  /** The commit of the last listing. */
  readonly earlier: string | null;
  /** The directory to list, given the last segment of the repository's actual path. */
  readonly directoryOf: (name: string) => string;
}

/**
 * Reads the directories of one host. Throws the failures of the port, or errors that `GitHost.failureOf` turns into them. The listing keeps
 * what it returns in the cache: the last head of each repository, and the files with their dates for each commit and directory.
 */
export interface ListingSource {
  /**
   * Returns the head if one request is enough for it, together with the head of the last listing (`last`; null if there was none). Null if
   * `open` is needed, and if the repository has another name than before.
   */
  readHead(repository: string, last: Head | null, signal: AbortSignal): Promise<Head | null>;
  /** Reads the directory. Fails if it has more files than `maxFiles` of the options. */
  open(request: OpenRequest, signal: AbortSignal): Promise<OpenedTree>;
  /**
   * Adds the dates of the files' first commits to `dates`, in milliseconds, as they are found. The paths are relative to the root. Rejects
   * if a request fails; the next listing then continues with the dates that were added. A path without a date after it has resolved is no
   * file for listings of this commit.
   */
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

const headSchema: z.ZodType<Head> = z.object({
  id: z.union([z.string(), z.number()]), name: z.string().min(1), commit: z.string().nullable(), etag: z.string().nullable(),
});
const fileSchema: z.ZodType<CachedFile> = z.object({ path: z.string(), blobId: Oid, createdAt: z.number().nullable() });
const CachedHead = z.object({ version: z.literal(1), head: headSchema });
const CachedFiles = z.object({ version: z.literal(3), files: z.array(fileSchema) });

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
