import type { JsonCache } from '../listing-cache.ts';
import { CachedFiles, CachedRepository } from './github-schemas.ts';

/** A file, and its date in ms if that is known. */
export interface CachedFile {
  readonly path: string;
  readonly oid: string;
  readonly createdAt: number | null;
}

/** The cache of repositories and directories. */
export interface GitHubCache {
  repository(repository: string): Promise<CachedRepository | null>;
  putRepository(repository: string, cached: Omit<CachedRepository, 'version'>): Promise<void>;
  /** The files are a function of the commit, whatever repository it is in. */
  files(head: string, directory: string): Promise<readonly CachedFile[] | null>;
  putFiles(head: string, directory: string, files: readonly CachedFile[]): Promise<void>;
}

export function createGitHubCache(cache: JsonCache): GitHubCache {
  return {
    repository: (repository) => cache.get(`repository ${repository}`, CachedRepository),
    putRepository: (repository, cached) => cache.put(`repository ${repository}`, { version: 1, ...cached } satisfies CachedRepository),
    async files(head, directory) {
      const cached = await cache.get(`files ${head} ${directory}`, CachedFiles);
      return cached?.files.map(([path, oid, createdAt]) => ({ path, oid, createdAt })) ?? null;
    },
    async putFiles(head, directory, files) {
      const rows = files.map(({ path, oid, createdAt }) => [path, oid, createdAt] as [string, string, number | null]);
      await cache.put(`files ${head} ${directory}`, { version: 1, files: rows } satisfies CachedFiles);
    },
  };
}
