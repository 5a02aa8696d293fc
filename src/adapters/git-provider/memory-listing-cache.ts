import type { ListingCache } from '../../ports/listing-cache.ts';

const maxEntries = 512;
const maxCharacters = 16 * 1024 * 1024;

/** Keeps knowledge in memory, where the deployment has no better place. */
export function createRecentKnowledge(): ListingCache {
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
