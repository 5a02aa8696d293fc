import type { z } from 'zod';
import type { ListingCache } from '../../ports/listing-cache.ts';
import { createLruMap } from '../shared/lru-map.ts';

const maxEntries = 512;
const maxCharacters = 16 * 1024 * 1024;

/** A cache in memory, for a deployment that gives no other. */
export function createMemoryListingCache(): ListingCache {
  const entries = createLruMap<string>(maxEntries, maxCharacters, ({ length }) => length);
  return {
    get: async (scope, key) => entries.get(JSON.stringify([scope, key])),
    put: async (scope, key, value) => entries.set(JSON.stringify([scope, key]), value),
  };
}

export type JsonCache = ReturnType<typeof createJsonCache>;

/** One scope of a listing cache, with entries in JSON. */
export function createJsonCache(cache: ListingCache, scopeOf: () => Promise<string>) {
  return {
    /** Returns null if there is no entry of this form, also if the cache fails: then the host is asked again. */
    async get<T>(key: string, schema: z.ZodType<T>): Promise<T | null> {
      try {
        const value = await cache.get(await scopeOf(), key);
        return value === null ? null : schema.parse(JSON.parse(value));
      } catch {
        return null;
      }
    },
    async put(key: string, value: unknown): Promise<void> {
      try {
        await cache.put(await scopeOf(), key, JSON.stringify(value));
      } catch {
        // Without the entry the host is asked again.
      }
    },
  };
}
