import type { ListingCache } from '../../ports/listing-cache.ts';
import type { Db } from './database.ts';

interface ListingCacheOptions {
  /** The maximum size of all entries, with their scopes and keys, in bytes of UTF-8. */
  readonly maxBytes: number;
  readonly now: () => number;
}

/** The precision of the last use. A second read within this time writes nothing. */
const touchIntervalMs = 60_000;

export function createListingCache(db: Db, { maxBytes, now }: ListingCacheOptions): ListingCache {
  return {
    async get(scope, key) {
      const entry = await entryAt(db, scope, key).select(['id', 'value', 'used_at']).executeTakeFirst();
      if (entry === undefined) return null;
      if (Math.abs(now() - entry.used_at) >= touchIntervalMs) await touch(db, entry.id, now());
      return entry.value;
    },
    async put(scope, key, value) {
      const bytes = [scope, key, value].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
      await db.transaction().execute(async (trx) => {
        // The size has its own table: a sum for each write would read all entries.
        const earlier = await entryAt(trx, scope, key).select(['id', 'bytes']).executeTakeFirst();
        let { bytes: size } = await trx.selectFrom('listing_cache_size').select('bytes').executeTakeFirstOrThrow();
        if (earlier !== undefined) size -= await evict(trx, earlier);
        if (bytes <= maxBytes) {
          while (size + bytes > maxBytes) {
            const byLastUse = trx.selectFrom('listing_cache').orderBy('used_at').orderBy('id');
            const oldest = await byLastUse.select(['id', 'bytes']).limit(1).executeTakeFirst();
            if (oldest === undefined) break;
            size -= await evict(trx, oldest);
          }
          await trx.insertInto('listing_cache').values({ scope, key, value, bytes, used_at: now() }).executeTakeFirst();
          size += bytes;
        }
        await trx.updateTable('listing_cache_size').set({ bytes: size }).executeTakeFirst();
      });
    },
  };
}

function entryAt(db: Db, scope: string, key: string) {
  return db.selectFrom('listing_cache').where('scope', '=', scope).where('key', '=', key);
}

/** Records the use of an entry. An error is ignored, since the entry then only seems less used. */
async function touch(db: Db, id: number, usedAt: number): Promise<void> {
  try {
    await db.updateTable('listing_cache').set({ used_at: usedAt }).where('id', '=', id).executeTakeFirst();
  } catch {
    // For example, the disk is full.
  }
}

async function evict(trx: Db, { id, bytes }: { readonly id: number; readonly bytes: number }): Promise<number> {
  await trx.deleteFrom('listing_cache').where('id', '=', id).executeTakeFirst();
  return bytes;
}
