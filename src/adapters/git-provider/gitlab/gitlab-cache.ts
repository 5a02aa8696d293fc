import { z } from 'zod';
import type { JsonCache } from '../listing-cache.ts';
import type { Snapshot } from './changes-since.ts';
import type { ProjectName } from './gitlab-api.ts';
import type { Head } from './head-commit.ts';

/** When the host confirmed what a name stands for. */
export interface Confirmation {
  readonly head: Head;
  /** In ms since the epoch. */
  readonly at: number;
}

/** The cache of directories and confirmations. */
export interface GitLabCache {
  snapshot(project: ProjectName, directory: string): Promise<Snapshot | null>;
  putSnapshot(project: ProjectName, directory: string, snapshot: Snapshot): Promise<void>;
  confirmation(repository: string): Promise<Confirmation | null>;
  putConfirmation(repository: string, confirmation: Confirmation): Promise<void>;
}

/** A file without a third item has no known date. */
const CachedSnapshot = z.object({
  version: z.literal(1),
  sha: z.string(),
  files: z.array(z.tuple([z.string(), z.string()]).rest(z.number().nullable())),
});
const CachedConfirmation = z.object({
  head: z.object({ project: z.union([z.string(), z.number()]), name: z.string(), sha: z.string().nullable() }),
  at: z.number(),
});

export function createGitLabCache(cache: JsonCache): GitLabCache {
  return {
    async snapshot(project, directory) {
      const cached = await cache.get(JSON.stringify(['directory', project, directory]), CachedSnapshot);
      if (cached === null) return null;
      const dates = new Map<string, number | null>();
      for (const [path, , date] of cached.files) if (date !== undefined) dates.set(path, date);
      return { sha: cached.sha, tree: new Map(cached.files.map(([path, mark]) => [path, mark])), dates };
    },
    async putSnapshot(project, directory, { sha, tree, dates }) {
      const files = [...tree].map(([path, mark]) => (dates.has(path) ? [path, mark, dates.get(path)] : [path, mark]));
      await cache.put(JSON.stringify(['directory', project, directory]), { version: 1, sha, files });
    },
    confirmation: (repository) => cache.get(JSON.stringify(['repository', repository]), CachedConfirmation),
    putConfirmation: (repository, confirmation) => cache.put(JSON.stringify(['repository', repository]), confirmation),
  };
}
