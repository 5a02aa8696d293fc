import { Failure } from '../../../domain/failure.ts';
import { storeUnavailable } from '../store-failure.ts';

const busy = 5;

/** What SQLite's primary result codes mean for the person who runs the deployment. */
const reasons: Readonly<Record<number, string>> = {
  3: 'the database file may not be accessed',
  [busy]: 'the database is locked by another program',
  6: 'the database is locked by another program',
  7: 'there is not enough memory',
  8: 'the database file is not writable',
  10: 'reading or writing the database file failed',
  11: 'the database file is damaged; restore it from a backup',
  13: 'the disk is full',
  14: 'the database file could not be opened',
  26: 'the database file is damaged; restore it from a backup',
};

/** Whether another connection holds the lock that the statement needs. */
export function isBusy(error: unknown): boolean {
  return primaryCodeOf(error) === busy;
}

/** Returns the reason of an error of `node:sqlite`; null for any other error. */
export function reasonOf(error: unknown): string | null {
  const code = primaryCodeOf(error);
  return code === null ? null : (reasons[code] ?? `SQLite refused a statement with code ${code}`);
}

/** Returns an error of `node:sqlite` as the failure `store_unavailable`, and any other error as it is. */
export function asFailure(error: unknown): unknown {
  const reason = error instanceof Failure ? null : reasonOf(error);
  return reason === null ? error : storeUnavailable(reason, error);
}

function primaryCodeOf(error: unknown): number | null {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode & 0xff : null;
}
