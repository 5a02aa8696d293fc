import type { IdempotencyClaim, ClaimOutcome } from '../../../ports/idempotency-claim.ts';
import type { Connection } from './connection.ts';
import { build, pick, statement } from './statement.ts';
import type { ClaimRow } from './tables.ts';

/** What sort of record a claim belongs to; the same key for two sorts is two claims. */
export type ClaimKind = ClaimRow['kind'];

const find = statement((p: Pick<ClaimRow, 'owner_id' | 'kind' | 'key'>) =>
  build
    .selectFrom('claims')
    .select(['fingerprint', 'record_id'])
    .where('owner_id', '=', p.owner_id)
    .where('kind', '=', p.kind)
    .where('key', '=', p.key),
);

const insert = statement((p: ClaimRow) =>
  build.insertInto('claims').values(pick(p, ['owner_id', 'kind', 'key', 'fingerprint', 'record_id'])),
);

const removeOf = statement((p: Pick<ClaimRow, 'kind' | 'record_id'>) =>
  build.deleteFrom('claims').where('kind', '=', p.kind).where('record_id', '=', p.record_id),
);

/** What the claim says if it was made before; null if it is new. To be called inside a transaction. */
export function claimed(connection: Connection, kind: ClaimKind, claim: IdempotencyClaim | undefined): ClaimOutcome | null {
  if (claim === undefined) return null;
  const row = connection.get(find, { owner_id: claim.ownerId, kind, key: claim.key });
  if (row === undefined) return null;
  return row.fingerprint === claim.fingerprint ? { kind: 'repeated', id: row.record_id } : { kind: 'conflict' };
}

/** Keeps the claim with its record. To be called inside the record's transaction. */
export function keepClaim(connection: Connection, kind: ClaimKind, claim: IdempotencyClaim | undefined, recordId: string): void {
  if (claim === undefined) return;
  const { ownerId, key, fingerprint } = claim;
  connection.run(insert, { owner_id: ownerId, kind, key, fingerprint, record_id: recordId });
}

/** Forgets the claims of a record. To be called inside the transaction that removes the record. */
export function forgetClaims(connection: Connection, kind: ClaimKind, recordId: string): void {
  connection.run(removeOf, { kind, record_id: recordId });
}
