import { LRUCache } from 'lru-cache';
import type { z } from 'zod';
import type { ListingCache } from '../../ports/listing-cache.ts';

const maxEntries = 512;
const maxCharacters = 16 * 1024 * 1024;

/** A cache in memory, for a deployment without another one. */
export function createMemoryListingCache(): ListingCache {
  const entries = new LRUCache<string, string>({ max: maxEntries, maxSize: maxCharacters, sizeCalculation: ({ length }) => length || 1 });
  return {
    get: async (scope, key) => entries.get(JSON.stringify([scope, key])) ?? null,
    put: async (scope, key, value) => void entries.set(JSON.stringify([scope, key]), value),
  };
}

export type JsonCache = ReturnType<typeof createJsonCache>;

/** One scope of a listing cache, with entries in JSON. */
export function createJsonCache(cache: ListingCache, scope: string) {
  return {
    /** Returns null if there is no valid entry, or if the cache fails. Then the host is asked again. */
    async get<T>(key: string, schema: z.ZodType<T>): Promise<T | null> {
      try {
        const value = await cache.get(scope, key);
        return value === null ? null : schema.parse(JSON.parse(value));
      } catch {
        return null;
      }
    },
    async put(key: string, value: unknown): Promise<void> {
      try {
        await cache.put(scope, key, JSON.stringify(value));
      } catch {
        // Without the entry the host is asked again.
      }
    },
  };
}
