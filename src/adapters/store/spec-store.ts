import type { SpecStore } from '../../ports/spec-store.ts';
import type { Db } from './database.ts';

export function createSpecStore(db: Db): SpecStore {
  return {
    firstSeen: async (id, fingerprint, now) =>
      // In most calls the spec is unchanged. They take no write lock.
      (await findFirstSeen(db, id, fingerprint)) ??
      db.transaction().execute(async (trx) => {
        const known = await findFirstSeen(trx, id, fingerprint);
        if (known !== null) return known;
        await trx
          .insertInto('specs')
          .values({ id, fingerprint, first_seen: now })
          .onConflict((conflict) => conflict.column('id').doUpdateSet({ fingerprint, first_seen: now }))
          .executeTakeFirst();
        return now;
      }),
  };
}

async function findFirstSeen(db: Db, id: string, fingerprint: string): Promise<number | null> {
  const row = await db.selectFrom('specs').select(['fingerprint', 'first_seen']).where('id', '=', id).executeTakeFirst();
  return row?.fingerprint === fingerprint ? row.first_seen : null;
}
