import type { SpecStore } from '../../ports/spec-store.ts';
import type { Db } from './database.ts';

export function createSpecStore(db: Db): SpecStore {
  return {
    firstSeen: async (id, fingerprint, now) => {
      const known = await db.selectFrom('specs').select(['fingerprint', 'first_seen']).where('id', '=', id).executeTakeFirst();
      // In most calls the spec is unchanged. They take no write lock.
      if (known?.fingerprint === fingerprint) return known.first_seen;
      const written = db
        .insertInto('specs')
        .values({ id, fingerprint, first_seen: now })
        // Another process may have written the same content since then.
        .onConflict((conflict) => conflict.column('id').doUpdateSet((eb) => ({
          fingerprint,
          first_seen: eb.case().when('specs.fingerprint', '=', fingerprint).then(eb.ref('specs.first_seen')).else(now).end(),
        })))
        .returning('first_seen');
      return (await written.executeTakeFirstOrThrow()).first_seen;
    },
  };
}
