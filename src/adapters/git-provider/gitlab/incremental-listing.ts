import type { FileSelector, ListedFile } from '../file-selector.ts';
import type { GitHost } from '../hosted-provider.ts';
import { readSince, type Snapshot } from './changes-since.ts';
import { firstDate } from './first-commit.ts';
import type { ApiFor } from './gitlab-api.ts';
import type { GitLabCache } from './gitlab-cache.ts';
import { readHead } from './head-commit.ts';
import type { TreeRequest } from './directory-tree.ts';

export interface IncrementalListingDeps {
  readonly apiFor: ApiFor;
  readonly cache: GitLabCache;
  readonly maxFiles: number;
  readonly now: () => number;
  /** Is the time kept at which the host confirmed a head? */
  readonly keepsConfirmations: boolean;
}

/** Lists directories, and asks the host only for what the cache does not have. */
export function createIncrementalListing(deps: IncrementalListingDeps): Pick<GitHost, 'list' | 'recall'> {
  const { apiFor, cache, maxFiles, now, keepsConfirmations } = deps;
  return {
    async list(repository, selector, signal) {
      const head = await readHead(apiFor(signal), repository);
      const { project, name, sha } = head;
      const directory = selector.directoryOf(name);
      const files = sha === null ? [] : await listFiles(deps, { project, sha, directory, maxFiles }, selector, signal);
      if (keepsConfirmations) await cache.putConfirmation(repository, { head, at: now() });
      return { name, directory, files };
    },
    async recall(repository, selector) {
      const confirmation = await cache.confirmation(repository);
      if (confirmation === null) return null;
      const { head: { project, name, sha }, at: confirmedAt } = confirmation;
      const directory = selector.directoryOf(name);
      if (sha === null) return { name, directory, files: [], confirmedAt };
      const snapshot = await cache.snapshot(project, directory);
      return snapshot?.sha === sha ? { name, directory, files: filesOf(snapshot), confirmedAt } : null;
    },
  };
}

async function listFiles(
  deps: IncrementalListingDeps,
  request: TreeRequest,
  { wants }: FileSelector,
  signal: AbortSignal,
): Promise<ListedFile[]> {
  const { apiFor, cache } = deps;
  const { project, sha, directory } = request;
  let snapshot = await cache.snapshot(project, directory);
  if (snapshot?.sha !== sha) {
    snapshot = await readSince(apiFor(signal), request, snapshot);
    await cache.putSnapshot(project, directory, snapshot);
  }
  const { tree, dates } = snapshot;
  const undated = [...tree.keys()].filter((path) => wants(directory, path) && !dates.has(path));
  return filesOf(undated.length === 0 ? snapshot : await addDates(deps, request, snapshot, undated, signal));
}

/** Finds the dates of files. What was found is kept also if a request fails, so that the next listing goes on from there. */
async function addDates(
  { apiFor, cache }: IncrementalListingDeps,
  { project, sha, directory }: TreeRequest,
  snapshot: Snapshot,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<Snapshot> {
  const dates = new Map(snapshot.dates);
  const dated = { ...snapshot, dates };
  const failing = new AbortController();
  const api = apiFor(AbortSignal.any([signal, failing.signal]));
  const requests = paths.map(async (path) => {
    dates.set(path, await firstDate(api, project, sha, path));
  });
  try {
    await Promise.all(requests);
  } catch (error) {
    failing.abort(error);
    await Promise.allSettled(requests);
    throw error;
  } finally {
    await cache.putSnapshot(project, directory, dated);
  }
  return dated;
}

/** The files, without those that the host knows no commit of. */
function filesOf({ tree, dates }: Snapshot): ListedFile[] {
  return [...tree.keys()].filter((path) => dates.get(path) !== null).map((path) => ({ path, createdAt: dates.get(path) ?? null }));
}
