import type { FileSelector, Listed } from '../file-selector.ts';
import type { GitHost } from '../hosted-provider.ts';
import type { GitHubApi } from './github-api.ts';
import type { CachedFile, GitHubCache } from './github-cache.ts';
import { failed, reasons } from './github-failures.ts';
import type { CachedRepository } from './github-schemas.ts';
import { readHead } from './head-commit.ts';
import type { Opened, RepositorySource, TreeFile } from './repository-source.ts';

export interface IncrementalListingDeps {
  readonly api: GitHubApi;
  readonly source: RepositorySource;
  readonly cache: GitHubCache;
  readonly now: () => number;
  /** Is the time of a confirmation kept also if nothing else has changed? */
  readonly keepsConfirmations: boolean;
}

interface Request {
  readonly repository: string;
  readonly selector: FileSelector;
  readonly signal: AbortSignal;
}

/** Lists directories, and asks the host only for what the cache does not have. */
export function createIncrementalListing(deps: IncrementalListingDeps): Pick<GitHost, 'list' | 'recall'> {
  const { api, source, cache, now, keepsConfirmations } = deps;

  /** Returns the cached repository if its head is still the same, else null. */
  async function confirm({ repository, signal }: Request, last: CachedRepository): Promise<CachedRepository | null> {
    // The documented entity tag of a response that holds nothing but a commit's id.
    const etag = last.head === null ? null : (last.etag ?? `"${last.head}"`);
    const head = await readHead(api, repository, etag, signal);
    const confirmed = { ...last, confirmedAt: now() };
    if (head.kind === 'same') return confirmed;
    if (head.kind === 'empty') return { ...confirmed, head: null, etag: null };
    return head.kind === 'commit' && head.oid === last.head ? { ...confirmed, etag: head.etag } : null;
  }

  async function listUnchanged(request: Request, last: CachedRepository): Promise<Listed | null> {
    const confirmed = await confirm(request, last);
    if (confirmed === null) return null;
    const { name, path, head, etag } = confirmed;
    const directory = request.selector.directoryOf(name);
    let files: readonly CachedFile[] | null = [];
    if (head !== null) {
      files = await cache.files(head, directory);
      if (files === null) return null;
      files = await addDates(request, { path, head, directory }, files, true);
    }
    const changed = head !== last.head || etag !== last.etag;
    if (changed || keepsConfirmations) await cache.putRepository(request.repository, confirmed);
    return { name, directory, files };
  }

  async function listAnew(request: Request, last: CachedRepository | null): Promise<Listed> {
    const { repository, selector, signal } = request;
    const opened = await source.open({ repository, directoryOf: selector.directoryOf, earlier: last?.head ?? null }, signal);
    const { path, name, head, directory } = opened;
    let files: readonly CachedFile[] = [];
    if (head !== null) {
      const before = await cache.files(head, directory);
      const dateOf = datesIn(before ?? (await inheritedFiles(opened, last?.head ?? null, signal)));
      const all = opened.files.map((file) => ({ ...file, createdAt: dateOf(file) }));
      files = await addDates(request, { path, head, directory }, all, before !== null);
    }
    await cache.putRepository(repository, { path, name, head, etag: null, confirmedAt: now() });
    return { name, directory, files };
  }

  /**
   * The files of an earlier commit that the head descends from: what has the same content still has the same first
   * commit. If history was rewritten, they say nothing of the new one.
   */
  async function inheritedFiles(opened: Opened, earlier: string | null, signal: AbortSignal): Promise<readonly CachedFile[]> {
    if (earlier === null || earlier === opened.head) return [];
    const files = (await cache.files(earlier, opened.directory)) ?? [];
    const dateOf = datesIn(files);
    const useful = opened.files.some((file) => dateOf(file) !== null);
    return useful && (await opened.descends(signal)) ? files : [];
  }

  /** Finds the dates that the selector wants and that are unknown, and caches the files. */
  async function addDates(
    { selector, signal }: Request,
    { path, head, directory }: { readonly path: string; readonly head: string; readonly directory: string },
    files: readonly CachedFile[],
    isCached: boolean,
  ): Promise<readonly CachedFile[]> {
    const undated = files.filter((file) => file.createdAt === null && selector.wants(directory, file.path));
    if (undated.length === 0 && isCached) return files;
    const wanted = undated.map((file) => file.path);
    const dates = wanted.length === 0 ? new Map<string, number>() : await source.datesOf({ path, head, files: wanted }, signal);
    const lost = new Set(wanted.filter((file) => !dates.has(file)));
    if ([...lost].some((file) => !isUnreadable(file))) throw failed(reasons.undatedFile);
    const dated = files
      .filter((file) => !lost.has(file.path))
      .map((file) => ({ ...file, createdAt: file.createdAt ?? dates.get(file.path) ?? null }));
    await cache.putFiles(head, directory, dated);
    return dated;
  }

  return {
    async list(repository, selector, signal) {
      const request = { repository, selector, signal };
      const last = await cache.repository(repository);
      const unchanged = last === null || isRenamed(repository, last) ? null : await listUnchanged(request, last);
      return unchanged ?? (await listAnew(request, last));
    },
    async recall(repository, selector) {
      const last = await cache.repository(repository);
      if (last === null) return null;
      const directory = selector.directoryOf(last.name);
      const files = last.head === null ? [] : await cache.files(last.head, directory);
      return files === null ? null : { name: last.name, directory, files, confirmedAt: last.confirmedAt };
    },
  };
}

/** A repository that has another name can get yet another one while the head stays the same. */
function isRenamed(repository: string, { path }: CachedRepository): boolean {
  return repository.toLowerCase() !== path.toLowerCase();
}

/** The host replaces what is not UTF-8 in a path, so the history of such a path can't be asked for. */
function isUnreadable(path: string): boolean {
  return path.includes('\u{fffd}');
}

/** Finds the date of a file that has the same path and content. */
function datesIn(files: readonly CachedFile[]): (file: TreeFile) => number | null {
  const byPath = new Map(files.map((file) => [file.path, file]));
  return ({ path, oid }) => {
    const known = byPath.get(path);
    return known?.oid === oid ? known.createdAt : null;
  };
}
