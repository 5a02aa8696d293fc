import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { createPrivateFile, type DataFolder, makePrivate, unusable } from './data-folder.ts';
import { type Connection, openConnection } from './connection.ts';
import { migrate } from './migrate.ts';
import { migrations } from './migrations.ts';
import { StoreRefused } from './refusal.ts';
import { reasonOf } from './sqlite-error.ts';

/** Marks the file as this program's (`Skep` in ASCII). */
export const applicationId = 0x536b6570;

/** The schema's version of the folder's database, 0 for none; nothing is changed by looking. */
export function schemaVersionOf(folder: DataFolder): number {
  const content = translated(folder, () => (sizeOf(folder.database) === 0 ? null : inspect(folder.database)));
  if (content === null) return 0;
  const { version, id, tables } = content;
  if (version > 0 && id === applicationId) return requireKnown(folder, version);
  if (version === 0 && id === 0 && tables === 0) return 0;
  throw new StoreRefused(
    'damaged',
    `The file skep.db in the data folder ${folder.path} is not a database of Skep. Move it away, or choose another data folder (SKEP_DATA_DIR).`,
  );
}

/** Opens the folder's database and brings its schema up to date. Only for who holds the folder's lock. */
export function openAndMigrate(folder: DataFolder, busyTimeoutMs: number): Connection {
  return translated(folder, () => {
    createPrivateFile(folder.database);
    const connection = openDatabase(folder, busyTimeoutMs);
    try {
      migrate(connection.database, migrations, applicationId);
    } catch (error) {
      connection.close();
      throw error;
    }
    return connection;
  });
}

/** Opens the folder's database as it is. */
export function openCurrent(folder: DataFolder, busyTimeoutMs: number): Connection {
  return translated(folder, () => openDatabase(folder, busyTimeoutMs));
}

/** Opens the folder's database to be read, without a change to it or to what lies beside it. */
export function openReadOnly(folder: DataFolder, busyTimeoutMs: number): Connection {
  return translated(folder, () => openConnection(untouched(folder.database), busyTimeoutMs, { readOnly: true }));
}

function openDatabase(folder: DataFolder, busyTimeoutMs: number): Connection {
  for (const suffix of ['', '-wal', '-shm']) makePrivate(folder.database + suffix);
  const connection = openConnection(folder.database, busyTimeoutMs);
  try {
    const mode = connection.database.prepare('PRAGMA journal_mode = wal').get()?.['journal_mode'];
    if (mode !== 'wal') throw new Error(`its file system does not support SQLite's write-ahead log`);
  } catch (error) {
    connection.close();
    throw error;
  }
  return connection;
}

function inspect(path: string): { version: number; id: number; tables: number } {
  const database = new DatabaseSync(untouched(path), { readOnly: true, timeout: 1000 });
  try {
    const number = (sql: string): number => Number(Object.values(database.prepare(sql).get() ?? {})[0]);
    return {
      version: number('PRAGMA user_version'),
      id: number('PRAGMA application_id'),
      tables: number(`SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'`),
    };
  } finally {
    database.close();
  }
}

/** The database, to be read: without a log there is no writer, and reading it as immutable leaves no trace beside it. */
function untouched(path: string): URL {
  const url = pathToFileURL(path);
  if (sizeOf(`${path}-wal`) === 0) url.searchParams.set('immutable', '1');
  return url;
}

function requireKnown(folder: DataFolder, version: number): number {
  if (version <= migrations.length) return version;
  throw new StoreRefused(
    'newer',
    `The data folder ${folder.path} was written by a newer version of Skep (its schema is ${version}, this version knows ` +
      `${migrations.length}). Start that version again, or choose another data folder (SKEP_DATA_DIR). Nothing was changed.`,
  );
}

/** What goes wrong while the database is opened, as a refusal that says what to do. */
function translated<T>(folder: DataFolder, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof StoreRefused) throw error;
    const reason = reasonOf(error);
    if (reason === null || !/damaged/.test(reason)) throw unusable(folder.path, reason === null ? error : new Error(reason, { cause: error }));
    throw new StoreRefused(
      'damaged',
      `The file skep.db in the data folder ${folder.path} is damaged. Restore the folder from a backup, or move it away to begin anew.`,
      { cause: error },
    );
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
