import type { z } from 'zod';
import type { ListingCache } from '../../ports/listing-cache.ts';

const maxEntries = 512;
const maxCharacters = 16 * 1024 * 1024;

/** A cache in memory, for a deployment that gives no other. The entry that was used least recently goes first. */
export function createMemoryListingCache(): ListingCache {
  const entries = new Map<string, string>();
  let characters = 0;

  function remove(id: string): void {
    characters -= entries.get(id)?.length ?? 0;
    entries.delete(id);
  }

  return {
    async get(scope, key) {
      const id = JSON.stringify([scope, key]);
      const value = entries.get(id);
      if (value === undefined) return null;
      entries.delete(id);
      entries.set(id, value);
      return value;
    },
    async put(scope, key, value) {
      const id = JSON.stringify([scope, key]);
      remove(id);
      if (value.length > maxCharacters) return;
      entries.set(id, value);
      characters += value.length;
      for (const oldest of entries.keys()) {
        if (entries.size <= maxEntries && characters <= maxCharacters) return;
        remove(oldest);
      }
    },
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
