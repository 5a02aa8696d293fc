import { setImmediate } from 'node:timers/promises';
import type { Db } from './database.ts';
import { forgetClaims } from './idempotency-claims.ts';

const batchSize = 200;

/**
 * Deletes the records that were removed before the time, with their claims. Each batch is a transaction of its own, so
 * that a large purge does not block other calls.
 */
export async function purgeRecords(db: Db, kind: 'sandbox' | 'conversation', removedBefore: number): Promise<void> {
  const table = kind === 'sandbox' ? 'sandboxes' : 'conversations';
  const purgeBatch = (): Promise<number> =>
    db.transaction().execute(async (trx) => {
      const rows = await trx.selectFrom(table).select('id').where('removed_at', '<', removedBefore).limit(batchSize).execute();
      if (rows.length === 0) return 0;
      const ids = rows.map(({ id }) => id);
      await forgetClaims(trx, kind, ids);
      await trx.deleteFrom(table).where('id', 'in', ids).executeTakeFirst();
      return rows.length;
    });
  while ((await purgeBatch()) === batchSize) await setImmediate();
}
