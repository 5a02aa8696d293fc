import type { z } from 'zod';
import type { ListingCache } from '../../../ports/listing-cache.ts';
import { KnownFiles, KnownRepository } from './schema.ts';

/** A file, and its date in ms where that is known. */
export interface KnownFile {
  readonly path: string;
  readonly oid: string;
  readonly createdAt: number | null;
}

/**
 * What was learnt of repositories and directories. Whatever is wrong with the store, or with what it holds, is the same
 * as knowing nothing.
 */
export interface Known {
  repository(repository: string): Promise<KnownRepository | null>;
  putRepository(repository: string, known: Omit<KnownRepository, 'version'>): Promise<void>;
  /** The files are a function of the commit, whatever repository it is in. */
  files(head: string, directory: string): Promise<readonly KnownFile[] | null>;
  putFiles(head: string, directory: string, files: readonly KnownFile[]): Promise<void>;
}

export function createKnown(store: ListingCache, scope: string): Known {
  async function get<T>(key: string, schema: z.ZodType<T>): Promise<T | null> {
    try {
      const value = await store.get(scope, key);
      return value === null ? null : schema.parse(JSON.parse(value));
    } catch {
      return null;
    }
  }

  async function put(key: string, value: unknown): Promise<void> {
    await store.put(scope, key, JSON.stringify(value)).catch(() => null);
  }

  return {
    repository: (repository) => get(`repository ${repository}`, KnownRepository),
    putRepository: (repository, known) => put(`repository ${repository}`, { version: 1, ...known } satisfies KnownRepository),
    async files(head, directory) {
      const known = await get(`files ${head} ${directory}`, KnownFiles);
      return known?.files.map(([path, oid, createdAt]) => ({ path, oid, createdAt })) ?? null;
    },
    async putFiles(head, directory, files) {
      const rows = files.map(({ path, oid, createdAt }) => [path, oid, createdAt] as [string, string, number | null]);
      await put(`files ${head} ${directory}`, { version: 1, files: rows } satisfies KnownFiles);
    },
  };
}
