import type { ListingCache } from '../../../ports/listing-cache.ts';
import { type StoreState, whileOpen } from './state.ts';

/** `maxBytes` is how much is kept, scopes and keys included, in bytes of UTF-8. */
export function createMemoryKnowledge(state: StoreState, maxBytes: number): ListingCache {
  // What was not used for longest comes first.
  const entries = new Map<string, { readonly value: string; readonly bytes: number }>();
  let size = 0;

  function remove(id: string): void {
    size -= entries.get(id)?.bytes ?? 0;
    entries.delete(id);
  }

  return {
    get: (scope, key) =>
      whileOpen(state, () => {
        const id = JSON.stringify([scope, key]);
        const entry = entries.get(id);
        if (entry === undefined) return null;
        entries.delete(id);
        entries.set(id, entry);
        return entry.value;
      }),
    put: (scope, key, value) =>
      whileOpen(state, () => {
        const id = JSON.stringify([scope, key]);
        const bytes = [scope, key, value].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
        remove(id);
        if (bytes > maxBytes) return;
        entries.set(id, { value, bytes });
        size += bytes;
        for (const oldest of entries.keys()) {
          if (size <= maxBytes) return;
          remove(oldest);
        }
      }),
  };
}
