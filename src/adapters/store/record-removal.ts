import { statusChangeKinds } from '../../domain/event.ts';
import type { ClaimRow, Db } from './database.ts';
import { tables } from './idempotency-claims.ts';

/** Deletes records with their idempotency keys. Must be called in a transaction. */
async function deleteRecords(trx: Db, kind: ClaimRow['kind'], ids: readonly string[]): Promise<void> {
  await trx.deleteFrom('claims').where('kind', '=', kind).where('record_id', 'in', ids).executeTakeFirst();
  await trx.deleteFrom(tables[kind]).where('id', 'in', ids).executeTakeFirst();
}

/** Deletes a record with its idempotency key, if nobody has changed it since its insert. Returns false if it does not. */
export async function undoInsert(trx: Db, kind: ClaimRow['kind'], id: string): Promise<boolean> {
  const inserted = trx.selectFrom(tables[kind]).select('id').where('id', '=', id).where('version', '=', 1);
  if ((await inserted.executeTakeFirst()) === undefined) return false;
  await deleteRecords(trx, kind, [id]);
  return true;
}

const batchSize = 200;
const eventBatchSize = 2000;

/**
 * Deletes some records that were removed before the time, with idempotency keys, executions and the content of conversations: a batch that
 * does not block other calls. Returns true if more may be left.
 */
export function purgeRecords(db: Db, kind: ClaimRow['kind'], removedBefore: number): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const rows = await trx.selectFrom(tables[kind]).select('id').where('removed_at', '<', removedBefore).limit(batchSize).execute();
    if (rows.length === 0) return false;
    const ids = rows.map(({ id }) => id);
    if (kind === 'conversation' && (await purgeContentOf(trx, ids))) return true;
    if (kind === 'sandbox') await purgeExecutionsIn(trx, ids);
    await deleteRecords(trx, kind, ids);
    return rows.length === batchSize;
  });
}

/** Deletes some events of the conversations, but keeps their changes of status. Returns false if none was left. */
async function purgeContentOf(trx: Db, conversationIds: readonly string[]): Promise<boolean> {
  const content = trx.selectFrom('events').select('sequence').where('conversation_id', 'in', conversationIds)
    .where('kind', 'not in', statusChangeKinds).limit(eventBatchSize);
  const { numDeletedRows } = await trx.deleteFrom('events').where('sequence', 'in', content).executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}

async function purgeExecutionsIn(trx: Db, sandboxIds: readonly string[]): Promise<void> {
  const inThem = trx.selectFrom('executions').select('id').where('sandbox_id', 'in', sandboxIds);
  await trx.deleteFrom('claims').where('kind', '=', 'execution').where('record_id', 'in', inThem).executeTakeFirst();
  await trx.deleteFrom('executions').where('sandbox_id', 'in', sandboxIds).executeTakeFirst();
}
