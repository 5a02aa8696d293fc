import { Failure } from '../../../domain/failure.ts';
import { explained, type Reason } from '../../../domain/reason.ts';
import { storeUnavailable } from '../database.ts';

const busy = 5;
/** SQLITE_PERM, SQLITE_READONLY and SQLITE_CANTOPEN. */
const accessDenied: ReadonlySet<number> = new Set([3, 8, 14]);

/** The reasons for SQLite's result codes, for the person who runs the deployment. */
const reasons: Readonly<Record<number, Reason>> = {
  3: explained('the database file may not be accessed'),
  [busy]: { code: 'locked' },
  6: { code: 'locked' },
  7: explained('there is not enough memory'),
  8: explained('the database file is not writable'),
  10: explained('reading or writing the database file failed'),
  11: { code: 'damaged' },
  13: { code: 'disk_full' },
  14: explained('the database file could not be opened'),
  26: { code: 'damaged' },
  // SQLITE_IOERR_SHMSIZE: the shared memory file could not grow.
  4874: { code: 'disk_full' },
};

/** Returns whether another connection holds the lock that the statement needs. */
export function isBusy(error: unknown): boolean {
  const code = codeOf(error);
  return code !== null && primary(code) === busy;
}

/** Returns whether this user may not open or write the file. */
export function isAccessDenied(error: unknown): boolean {
  const code = codeOf(error);
  return code !== null && accessDenied.has(primary(code));
}

/** Returns the reason of an error of `node:sqlite`; null for any other error. */
export function reasonOf(error: unknown): Reason | null {
  const code = codeOf(error);
  if (code === null) return null;
  return reasons[code] ?? reasons[primary(code)] ?? explained(`SQLite refused a statement with code ${primary(code)}`);
}

/** Turns an error of `node:sqlite` into the failure `store_unavailable`. Returns any other error unchanged. */
export function asFailure(error: unknown): unknown {
  const reason = error instanceof Failure ? null : reasonOf(error);
  return reason === null ? error : storeUnavailable(reason, error);
}

function codeOf(error: unknown): number | null {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : null;
}

/** Returns the primary result code of an extended one. */
function primary(code: number): number {
  return code & 0xff;
}
