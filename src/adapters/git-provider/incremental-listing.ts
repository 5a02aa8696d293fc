import { z } from 'zod';
import type { DatedFile, DirectoryListing, FileQuery } from '../../ports/git-provider.ts';
import type { JsonCache } from './listing-cache.ts';

/** A repository, and the head of its default branch. */
export type Head = z.infer<typeof Head>;
const Head = z.object({
  /** The name that the host's API has for the repository: `owner/name`, or a number. */
  id: z.union([z.string(), z.number()]),
  /** The last segment of the repository's actual path. */
  name: z.string().min(1),
  /** Null if the repository is empty. */
  commit: z.string().nullable(),
  /** The entity tag of the response that named the commit, if it is known. */
  etag: z.string().nullable(),
});

/** A regular file. */
export interface TreeFile {
  /** Relative to the repository's root. */
  readonly path: string;
  /** Changes with the content. */
  readonly mark: string;
}

/** The date is in ms. Null if it is not known. */
export interface CachedFile extends TreeFile {
  readonly createdAt: number | null;
}

/** A directory at the head of a repository. */
export interface Opened {
  readonly head: Head;
  readonly directory: string;
  readonly files: readonly CachedFile[];
}

export interface OpenRequest {
  /** As the caller names it. */
  readonly repository: string;
  /** What `readHead` returned. */
  readonly head: Head | null;
  /** The commit of the last listing. */
  readonly earlier: string | null;
  /** The directory to list, given the last segment of the repository's actual path. */
  readonly directoryOf: (name: string) => string;
  readonly cachedFiles: (commit: string, directory: string) => Promise<readonly CachedFile[] | null>;
}

/** Reads the directories of one host. Failures: those of the port. */
export interface ListingSource {
  /** Returns the head if one request is enough to know it, given what the cache has. Null if it takes `open`. */
  readHead(repository: string, last: Head | null, signal: AbortSignal): Promise<Head | null>;
  /** Reads a directory, with those dates of the earlier listing that are still right. */
  open(request: OpenRequest, signal: AbortSignal): Promise<Opened>;
  /** Adds the dates of the files' first commits, in ms, as they are found. A file that ends without one is left out. */
  addDates(head: Head, commit: string, paths: readonly string[], dates: Map<string, number>, signal: AbortSignal): Promise<void>;
}

const CachedHead = z.object({ version: z.literal(1), head: Head, confirmedAt: z.int() });
const CachedFiles = z.object({ version: z.literal(1), files: z.array(z.tuple([z.string(), z.string(), z.number().nullable()])) });

/** Lists directories, and asks the host only for what the cache does not have. */
export class IncrementalListing {
  readonly #source: ListingSource;
  readonly #cache: JsonCache;
  readonly #now: () => number;
  readonly #keepsConfirmations: boolean;

  /** With `keepsConfirmations` the time of a listing is cached also if nothing has changed. */
  constructor(source: ListingSource, cache: JsonCache, now: () => number, keepsConfirmations: boolean) {
    this.#source = source;
    this.#cache = cache;
    this.#now = now;
    this.#keepsConfirmations = keepsConfirmations;
  }

  async list(repository: string, { directoryOf, wants }: FileSelector, signal: AbortSignal): Promise<Listed> {
    const last = (await this.#cachedHead(repository))?.head ?? null;
    const current = await this.#source.readHead(repository, last, signal);
    const cached = current === null ? null : await this.#openCached(current, directoryOf);
    const request = { repository, head: current, earlier: last?.commit ?? null, directoryOf, cachedFiles: this.#cachedFiles };
    const opened = cached ?? (await this.#source.open(request, signal));
    const { head, directory, files } = opened;
    const undated = files.filter(({ path, createdAt }) => createdAt === null && wants(directory, path)).map(({ path }) => path);
    const isComplete = undated.length === 0 && cached !== null;
    const dated = isComplete ? files : await this.#addDates(opened, undated, signal);
    const isSame = JSON.stringify(head) === JSON.stringify(last);
    if (!isSame || this.#keepsConfirmations) await this.#putHead(repository, head);
    return { name: head.name, directory, files: dated };
  }

  /** Returns what the cache has of the last listing, and when the host confirmed it, in ms since the epoch. */
  async recall(repository: string, { directoryOf }: FileSelector): Promise<(Listed & { readonly confirmedAt: number }) | null> {
    const last = await this.#cachedHead(repository);
    const cached = last === null ? null : await this.#openCached(last.head, directoryOf);
    if (last === null || cached === null) return null;
    return { name: last.head.name, directory: cached.directory, files: cached.files, confirmedAt: last.confirmedAt };
  }

  async #openCached(head: Head, directoryOf: (name: string) => string): Promise<Opened | null> {
    const directory = directoryOf(head.name);
    const files = head.commit === null ? [] : await this.#cachedFiles(head.commit, directory);
    return files === null ? null : { head, directory, files };
  }

  /** Dates that were found are kept also if a request fails, so that the next listing goes on from there. */
  async #addDates({ head, directory, files }: Opened, paths: readonly string[], signal: AbortSignal): Promise<readonly CachedFile[]> {
    const { commit } = head;
    if (commit === null) return files;
    const dates = new Map<string, number>();
    const dated = (): CachedFile[] => files.map((file) => ({ ...file, createdAt: file.createdAt ?? dates.get(file.path) ?? null }));
    try {
      if (paths.length > 0) await this.#source.addDates(head, commit, paths, dates, signal);
    } catch (error) {
      await this.#putFiles(commit, directory, dated());
      throw error;
    }
    const undatable = new Set(paths.filter((path) => !dates.has(path)));
    const datable = dated().filter(({ path }) => !undatable.has(path));
    await this.#putFiles(commit, directory, datable);
    return datable;
  }

  async #cachedHead(repository: string): Promise<z.infer<typeof CachedHead> | null> {
    return await this.#cache.get(`repository ${repository}`, CachedHead);
  }

  async #putHead(repository: string, head: Head): Promise<void> {
    const cached: z.infer<typeof CachedHead> = { version: 1, head, confirmedAt: this.#now() };
    await this.#cache.put(`repository ${repository}`, cached);
  }

  /** The files are a function of the commit, whatever repository it is in. */
  readonly #cachedFiles = async (commit: string, directory: string): Promise<readonly CachedFile[] | null> => {
    const cached = await this.#cache.get(`files ${commit} ${directory}`, CachedFiles);
    return cached?.files.map(([path, mark, createdAt]) => ({ path, mark, createdAt })) ?? null;
  };

  async #putFiles(commit: string, directory: string, files: readonly CachedFile[]): Promise<void> {
    const rows = files.map(({ path, mark, createdAt }): [string, string, number | null] => [path, mark, createdAt]);
    const cached: z.infer<typeof CachedFiles> = { version: 1, files: rows };
    await this.#cache.put(`files ${commit} ${directory}`, cached);
  }
}

/** A directory at the head of a repository. */
export interface Listed {
  /** The last segment of the repository's actual path. */
  readonly name: string;
  readonly directory: string;
  readonly files: readonly ListedFile[];
}

/** The date is in ms; null if nobody needed to know it. */
export interface ListedFile {
  readonly path: string;
  readonly createdAt: number | null;
}

/** Says which files a caller wants. The functions of the query are called once for each name and path. */
export interface FileSelector {
  readonly directoryOf: (name: string) => string;
  /** Does the caller need the date of the file? */
  readonly wants: (directory: string, path: string) => boolean;
  /** Returns the caller's part of a listing. Null if the listing was made for another caller, and lacks something. */
  select(listed: Listed): DirectoryListing | null;
}

export function createFileSelector(query: FileQuery): FileSelector {
  const directoryOf = memoize((name) => query.directory(name));
  const accepts = memoize((path) => query.accepts(path));
  const wants = (directory: string, path: string): boolean => accepts(path.slice(prefixOf(directory).length));
  return {
    directoryOf,
    wants,
    select({ name, directory, files }) {
      if (directoryOf(name) !== directory) return null;
      const wanted: DatedFile[] = [];
      for (const { path, createdAt } of files) {
        if (!wants(directory, path)) continue;
        if (createdAt === null) return null;
        wanted.push({ path, createdAt });
      }
      return { directory, files: wanted };
    },
  };
}

/** What the paths of the files below a directory begin with. */
export function prefixOf(directory: string): string {
  return directory === '' ? '' : `${directory}/`;
}

function memoize<T>(compute: (text: string) => T): (text: string) => T {
  const values = new Map<string, T>();
  return (text) => {
    const known = values.get(text);
    if (known !== undefined) return known;
    const value = compute(text);
    values.set(text, value);
    return value;
  };
}
