import { existsSync, statfsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { createPrivateFile, type DataFolder, makePrivate, sizeOf, StoreRefused, urlWithoutLocks, unusable } from './data-folder.ts';
import { applicationId, migrate } from './migrate.ts';
import { migrations } from './migrations.ts';
import { errorCode } from '../../shared/system-errors.ts';
import { checkLog, type StoreWarning } from './shutdown-marker.ts';
import { reasonOf } from './sqlite-error.ts';

const openTimeoutMs = 5000;

const pageBytes = 4096;

/** The commit after this many pages in the log also copies it into the database, which takes ten times as long. 8 MiB make this rare. */
const checkpointPages = 2000;

/** The space of the log. Some of it stays in SQLite's cache. A checkpoint leaves enough for about a hundred deletions on a full disk. */
const logPages = 6000;

/**
 * A commit is on the disk when it returns (`synchronous`, and `fullfsync` on macOS). References to records are checked. The schema of a
 * file from elsewhere can't call unsafe functions (`trusted_schema`). The log is rarely checkpointed, and cut to 64 MiB if it is larger.
 */
const settings = `
  PRAGMA synchronous = FULL;
  PRAGMA fullfsync = ON;
  PRAGMA checkpoint_fullfsync = ON;
  PRAGMA foreign_keys = ON;
  PRAGMA trusted_schema = OFF;
  PRAGMA wal_autocheckpoint = ${checkpointPages};
  PRAGMA journal_size_limit = 67108864;
`;

/** Checks the files of the folder. Returns the schema version, 0 if there is no database. Changes nothing. */
export function examineFolder(folder: DataFolder, warn: (warning: StoreWarning) => void = () => {}): number {
  checkLog(folder, warn);
  const content = withRefusals(folder, () => (sizeOf(folder.database) === 0 ? null : inspect(folder.database)));
  if (content === null) {
    if (existsSync(folder.deployment)) warn({ code: 'store_lost', dataDir: folder.path });
    return 0;
  }
  const { version, id, tables } = content;
  if (version > 0 && id === applicationId) return requireKnown(folder, version);
  if (version === 0 && id === 0 && tables === 0) return 0;
  throw new StoreRefused(
    'damaged',
    `The file skep.db in the data folder ${folder.path} is not a database of Skep. ` +
      'Move it away, or choose another data folder (SKEP_DATA_DIR).',
  );
}

/** Opens the folder's database and migrates it. The caller must hold the folder's lock. */
export function openAndMigrate(folder: DataFolder): DatabaseSync {
  return withRefusals(folder, () => {
    createPrivateFile(folder.database);
    return closeOnError(openWritable(folder), (database) => migrate(database));
  });
}

export function openCurrent(folder: DataFolder): DatabaseSync {
  return withRefusals(folder, () => openWritable(folder));
}

/**
 * Takes the disk space of the log in advance, but at most half of what is free. So what frees space can be recorded on a full disk, where
 * checkpoints fail if the database has grown, and the log continues beyond its usual size. SQLite overwrites the log in place and does not
 * shrink it, so it keeps the space of a transaction that is undone. The caller must hold the folder's lock.
 */
export function reserveLog(folder: DataFolder, database: DatabaseSync): void {
  const { bavail, bsize } = statfsSync(folder.path);
  const bytes = Math.min(logPages * pageBytes, Math.floor((bavail * bsize) / 2));
  try {
    database.exec(`BEGIN IMMEDIATE; CREATE TABLE reserve (content); INSERT INTO reserve VALUES (zeroblob(${bytes}))`);
  } catch (error) {
    // This user may not use all of the disk, or not so large a file. Then the log has less space.
    if (reasonOf(error) === null) throw error;
  } finally {
    if (database.isTransaction) database.exec('ROLLBACK');
  }
}

export function openReadOnly(folder: DataFolder): DatabaseSync {
  return withRefusals(folder, () => open(urlWithoutLocks(folder.database), { readOnly: true }));
}

/** A new database after its migrations. A copy takes less than a millisecond, and the migrations take 15. */
let newDatabase: Uint8Array | null = null;

export function openInMemory(): DatabaseSync {
  return closeOnError(open(':memory:'), (database) => {
    if (newDatabase !== null) return database.deserialize(newDatabase);
    migrate(database);
    // Node 24 can't copy a database.
    if ('serialize' in database) newDatabase = database.serialize();
  });
}

function openWritable(folder: DataFolder): DatabaseSync {
  for (const suffix of ['', '-wal', '-shm']) makePrivate(folder.database + suffix);
  return closeOnError(open(folder.database), (database) => {
    const mode = database.prepare('PRAGMA journal_mode = wal').get()?.['journal_mode'];
    if (mode !== 'wal') throw unusable(folder.path, new Error("its file system does not support SQLite's write-ahead log"));
  });
}

function open(path: string | URL, { readOnly = false } = {}): DatabaseSync {
  return closeOnError(new DatabaseSync(path, { timeout: openTimeoutMs, readOnly }), (database) => database.exec(settings));
}

function closeOnError(database: DatabaseSync, prepare: (database: DatabaseSync) => void): DatabaseSync {
  try {
    prepare(database);
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

function inspect(path: string): { version: number; id: number; tables: number } {
  using database = new DatabaseSync(urlWithoutLocks(path), { readOnly: true, timeout: openTimeoutMs });
  const number = (sql: string): number => Number(Object.values(database.prepare(sql).get() ?? {})[0]);
  return {
    version: number('PRAGMA user_version'),
    id: number('PRAGMA application_id'),
    tables: number(`SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'`),
  };
}

function requireKnown(folder: DataFolder, version: number): number {
  if (version <= migrations.length) return version;
  throw new StoreRefused(
    'newer',
    `The data folder ${folder.path} was written by a newer version of Skep (its schema is ${version}, this version knows ` +
      `${migrations.length}). Start that version again, or choose another data folder (SKEP_DATA_DIR). Nothing was changed.`,
  );
}

/** Runs the work. Turns errors of SQLite and of the operating system into refusals that say what to do. */
export function withRefusals<T>(folder: DataFolder, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const reason = reasonOf(error);
    if (reason === null && errorCode(error) === undefined) throw error;
    if (reason?.code !== 'damaged') throw unusable(folder.path, error, false);
    throw new StoreRefused(
      'damaged',
      `The file skep.db in the data folder ${folder.path} is damaged. Restore the folder from a backup, or move it away to begin anew.`,
      { cause: error },
    );
  }
}
