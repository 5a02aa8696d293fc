import { Failure } from '../../domain/failure.ts';

const retryAfterSeconds = 5;

export function storeUnavailable(reason: string, cause?: unknown): Failure<'store_unavailable'> {
  return new Failure('store_unavailable', { reason, retryAfterSeconds }, { cause });
}

/** The failure for a row that can be read, but whose content is not valid. */
export function damagedRecord(cause?: unknown): Failure<'store_unavailable'> {
  return storeUnavailable('a record in the database is damaged; restore it from a backup', cause);
}
