import type { ClaimOutcome, IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import type { ClaimRow, Db } from './database.ts';

/** The table of each kind of record. */
export const tables = { sandbox: 'sandboxes', conversation: 'conversations', execution: 'executions' } as const;

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
