import { Failure } from '../../../domain/failure.ts';

const retryAfterSeconds = 5;

/** SQLite's primary result codes that a deployment can run into, in words for the caller. */
const reasons: Readonly<Record<number, string>> = {
  3: 'the database file may not be accessed',
  5: 'the database is locked by another program',
  6: 'the database is locked by another program',
  7: 'there is not enough memory',
  8: 'the database file is not writable',
  10: 'reading or writing the database file failed',
  11: 'the database file is damaged; restore it from a backup',
  13: 'the disk is full',
  14: 'the database file could not be opened',
  26: 'the database file is damaged; restore it from a backup',
};

/** The reason that an error of `node:sqlite` tells, in words; null for any other error. */
export function reasonOf(error: unknown): string | null {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return null;
  return reasons[error.errcode & 0xff] ?? `SQLite refused a statement with code ${error.errcode}`;
}

export function unavailable(reason: string, cause?: unknown): Failure<'store_unavailable'> {
  return new Failure('store_unavailable', { reason, retryAfterSeconds }, { cause });
}

/** An error of `node:sqlite` as the failure that it is to the caller; anything else is passed on as it came. */
export function asFailure(error: unknown): unknown {
  const reason = reasonOf(error);
  return reason === null ? error : unavailable(reason, error);
}

/** A record that can be read but not be understood. */
export function damagedRecord(cause?: unknown): Failure<'store_unavailable'> {
  return unavailable('a record in the database is damaged; restore it from a backup', cause);
}
