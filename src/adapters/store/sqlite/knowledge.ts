import type { ListingCache } from '../../../ports/listing-cache.ts';
import type { Connection } from './connection.ts';
import { addKnowledge, evictKnowledge, findKnowledge, oldestKnowledge, readSize, touchKnowledge, writeSize } from './knowledge-statements.ts';

export interface KnowledgeOptions {
  /** How much is kept, scopes and keys included, in bytes of UTF-8. */
  readonly maxBytes: number;
  /** In ms since the epoch. */
  readonly now: () => number;
}

/** How exactly it is known when an entry was used: reading again within this time writes nothing. */
const touchIntervalMs = 60_000;

export function createKnowledge(connection: Connection, { maxBytes, now }: KnowledgeOptions): ListingCache {
  /** Reading does not fail where noting it does: then the entry only looks less used than it is. */
  function touch(id: number): void {
    try {
      connection.run(touchKnowledge, { id, used_at: now() });
    } catch {
      // The disk is full, say.
    }
  }

  function evict(id: number, bytes: number): void {
    connection.run(evictKnowledge, { id });
    connection.run(writeSize, { bytes: size() - bytes });
  }

  function size(): number {
    return connection.get(readSize, {})?.bytes ?? 0;
  }

  function makeRoom(bytes: number): void {
    while (size() + bytes > maxBytes) {
      const oldest = connection.get(oldestKnowledge, {});
      if (oldest === undefined) return;
      evict(oldest.id, oldest.bytes);
    }
  }

  return {
    async get(scope, key) {
      const entry = connection.get(findKnowledge, { scope, key });
      if (entry === undefined) return null;
      if (Math.abs(now() - entry.used_at) >= touchIntervalMs) touch(entry.id);
      return entry.value;
    },
    async put(scope, key, value) {
      const bytes = [scope, key, value].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
      connection.transaction(() => {
        const earlier = connection.get(findKnowledge, { scope, key });
        if (earlier !== undefined) evict(earlier.id, earlier.bytes);
        if (bytes > maxBytes) return;
        makeRoom(bytes);
        connection.run(addKnowledge, { scope, key, value, bytes, used_at: now() });
        connection.run(writeSize, { bytes: size() + bytes });
      });
    },
  };
}
