import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { errorCode } from '../../shared/system-errors.ts';
import { type DataFolder, sizeOf, StoreRefused } from './data-folder.ts';
import { reasonOf } from './sqlite-error.ts';

/** The id in a closed store. It is as long as any other id, so that the row is overwritten in place. */
const closed = '-'.repeat(36);

/**
 * - `log_lost`: the write-ahead log of a store that was not closed is gone. Changes are lost, unless another program merged the log.
 * - `store_lost`: the deployment has been used, but its database is gone.
 * - `upgrading`: the store is of an older version, and is upgraded now.
 */
export interface StoreWarning {
  readonly code: 'log_lost' | 'store_lost' | 'upgrading';
  readonly dataDir: string;
}

/**
 * While a server has a store open, the main file `skep.db` and the file `skep.db-open` beside it contain the id of this opening. The last
 * changes are only in the write-ahead log. So a `skep.db` with an id but without a log was copied without it. If its id differs from
 * `skep.db-open`, the log belongs to another file. A crash leaves both ids unchanged. If the main file can't get the id, the store stays
 * marked as closed: then its log is accepted, but a copy without the log is too.
 */
export function markOpen(folder: DataFolder, database: DatabaseSync): void {
  let id = readDeployment(database, 'opening') ?? closed;
  if (id === closed) {
    id = randomUUID();
    rmSync(folder.marker, { force: true });
    writeOpenId(database, id);
  }
  // The id must be in the main file, not only in the log.
  database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  if (readMainFile(folder) !== id) {
    // A reader, such as a backup, holds an older state. With the marker, the log would look like that of another file after a crash.
    rmSync(folder.marker, { force: true });
    writeOpenId(database, closed);
    return;
  }
  writeFileSync(folder.marker, `${id}\n`, { mode: 0o600, flush: true });
}

/** Must be called before the last connection is closed, which merges the log into the main file. */
export function markClosed(folder: DataFolder, database: DatabaseSync): void {
  try {
    // Ends an open transaction, since the write must not be part of it.
    if (database.isTransaction) database.exec('ROLLBACK');
    // Merges the log, so that the write reuses its space, also on a full disk.
    database.exec('PRAGMA wal_checkpoint(RESTART)');
    writeOpenId(database, closed);
  } catch (error) {
    // The store counts as not closed. That does no harm: if the log can't be merged here, closing can't merge and remove it either.
    if (reasonOf(error) === null) throw error;
    return;
  }
  rmSync(folder.marker, { force: true });
}

/** Clears the marker in a copy, which has no log. Returns false for a copy of an older version, which has no marker and no deployment. */
export function clearMarker(database: DatabaseSync): boolean {
  if (readDeployment(database, 'opening') === null) return false;
  writeOpenId(database, closed);
  return true;
}

/** Checks the log before anything reads it. Throws `log_missing` or `log_of_another`. Warns if the log of a crashed server is gone. */
export function checkLog(folder: DataFolder, warn: (warning: StoreWarning) => void): void {
  // The log is read first, so that a server that closes meanwhile does not look like a copy.
  const hasLog = sizeOf(`${folder.database}-wal`) > 0;
  const inFile = readMainFile(folder);
  if (inFile === null) return;
  const wasClosed = inFile === closed;
  const inMarker = readMarkerFile(folder) ?? closed;
  if (inFile === inMarker) {
    if (!wasClosed && !hasLog) warn({ code: 'log_lost', dataDir: folder.path });
    return;
  }
  if (hasLog && inMarker !== closed) throw logOfAnother(folder);
  if (!hasLog && !wasClosed) throw logMissing(folder);
}

function logOfAnother({ path }: DataFolder): StoreRefused {
  return new StoreRefused(
    'log_of_another',
    `The write-ahead log skep.db-wal in the data folder ${path} belongs to another skep.db than the one that is there, and would damage `
      + 'it. Move skep.db-wal and skep.db-shm out of the folder, or put the skep.db back that they belong to. Nothing was changed.',
  );
}

function logMissing({ path, database }: DataFolder): StoreRefused {
  return new StoreRefused(
    'log_missing',
    `skep.db in the data folder ${path} was copied from a running server without its write-ahead log skep.db-wal, so its last changes are `
      + 'missing. Put the log of the same moment beside it. If there is none, accept the loss: restore skep.db in its own place. '
      + 'Nothing was changed.',
    { database },
  );
}

function readMarkerFile({ marker }: DataFolder): string | null {
  try {
    return readFileSync(marker, 'utf8').trim();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Reads the id in the main file without its log. Returns null if it can't be read: opening the database then reports the problem. */
function readMainFile(folder: DataFolder): string | null {
  if (sizeOf(folder.database) === 0) return null;
  const url = pathToFileURL(folder.database);
  url.searchParams.set('immutable', '1');
  try {
    using database = new DatabaseSync(url, { readOnly: true });
    return readDeployment(database, 'opening');
  } catch (error) {
    if (reasonOf(error) === null) throw error;
    return null;
  }
}

/** Returns a value of the table `deployment`; null if it has none, and for a database of an older version, which has no such table. */
export function readDeployment(database: DatabaseSync, column: 'opening' | 'id' | 'runtime'): string | null {
  if (database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'deployment'").get() === undefined) return null;
  const value = database.prepare(`SELECT ${column} FROM deployment`).get()?.[column];
  return typeof value === 'string' ? value : null;
}

function writeOpenId(database: DatabaseSync, id: string): void {
  database.prepare('UPDATE deployment SET opening = ?').run(id);
}
