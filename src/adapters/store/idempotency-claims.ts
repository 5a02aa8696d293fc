import { setImmediate } from 'node:timers/promises';
import { statusChangeKinds } from '../../domain/event.ts';
import type { ClaimOutcome, IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import type { ClaimRow, Db } from './database.ts';

const tables = { sandbox: 'sandboxes', conversation: 'conversations', execution: 'executions' } as const;

/** Returns the outcome of the earlier request with this claim. Null if the claim is new. */
export async function findClaim(trx: Db, kind: ClaimRow['kind'], claim: IdempotencyClaim | undefined): Promise<ClaimOutcome | null> {
  if (claim === undefined) return null;
  const row = await trx
    .selectFrom('claims')
    .select(['fingerprint', 'record_id'])
    .where('owner_id', '=', claim.ownerId)
    .where('kind', '=', kind)
    .where('key', '=', claim.key)
    .executeTakeFirst();
  if (row === undefined) return null;
  return row.fingerprint === claim.fingerprint ? { kind: 'repeated', id: row.record_id } : { kind: 'conflict' };
}

/**
 * Inserts a record with its claim, unless an earlier call inserted this record or had this claim. Must be called in a transaction. `insert`
 * returns null, or why it inserted nothing.
 */
export async function insertOnce<R extends { readonly kind: string }>(
  trx: Db, kind: ClaimRow['kind'], id: string, claim: IdempotencyClaim | undefined, insert: () => Promise<R | null>,
): Promise<ClaimOutcome | { readonly kind: 'inserted' } | R> {
  const existing = await trx.selectFrom(tables[kind]).select('id').where('id', '=', id).executeTakeFirst();
  if (existing !== undefined) return { kind: 'inserted' };
  const otherwise = (await findClaim(trx, kind, claim)) ?? (await insert());
  if (otherwise !== null) return otherwise;
  await keepClaim(trx, kind, claim, id);
  return { kind: 'inserted' };
}

/** Stores the claim. Must be called in the transaction that writes the record. */
export async function keepClaim(
  trx: Db,
  kind: ClaimRow['kind'],
  claim: IdempotencyClaim | undefined,
  recordId: string,
): Promise<void> {
  if (claim === undefined) return;
  const { ownerId, key, fingerprint } = claim;
  await trx.insertInto('claims').values({ owner_id: ownerId, kind, key, fingerprint, record_id: recordId }).executeTakeFirst();
}

/** Deletes records with their claims. Must be called in a transaction. */
export async function deleteRecords(trx: Db, kind: ClaimRow['kind'], ids: readonly string[]): Promise<void> {
  await trx.deleteFrom('claims').where('kind', '=', kind).where('record_id', 'in', ids).executeTakeFirst();
  await trx.deleteFrom(tables[kind]).where('id', 'in', ids).executeTakeFirst();
}

const batchSize = 200;
const eventBatchSize = 2000;

/**
 * Deletes records that were removed before the time, with claims, executions and the content of conversations, in batches that do not block
 * other calls.
 */
export async function purgeRecords(db: Db, kind: ClaimRow['kind'], removedBefore: number): Promise<void> {
  const purgeBatch = (): Promise<number> =>
    db.transaction().execute(async (trx) => {
      const rows = await trx.selectFrom(tables[kind]).select('id').where('removed_at', '<', removedBefore).limit(batchSize).execute();
      if (rows.length === 0) return 0;
      const ids = rows.map(({ id }) => id);
      if (kind === 'conversation' && (await purgeContentOf(trx, ids))) return batchSize;
      if (kind === 'sandbox') await purgeExecutionsIn(trx, ids);
      await deleteRecords(trx, kind, ids);
      return rows.length;
    });
  while ((await purgeBatch()) === batchSize) await setImmediate();
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
