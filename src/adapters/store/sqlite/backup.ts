import { closeSync, openSync, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { sentenceOf } from '../../shared/failure-sentences.ts';
import { type DataFolder, dataFolderAt, StoreRefused, syncFolders, whyUnusable } from './data-folder.ts';
import { applicationId, versionOf } from './migrate.ts';
import { migrations } from './migrations.ts';
import { examineFolder, openCurrent } from './open-database.ts';
import { clearMarker, type StoreWarning } from './shutdown-marker.ts';
import { reasonOf } from './sqlite-error.ts';
import { closeShared } from './store.ts';

/** Copies all pages in one step: a write of the server between two steps would restart the copy. */
export const allPages = 2 ** 31 - 1;

export interface BackupOptions {
  readonly dataDir: string;
  readonly file: string;
  /** The runtime of the sandboxes. Null if unknown. */
  readonly runtime: string | null;
  readonly warn: (warning: StoreWarning) => void;
}

/** Writes a complete and private copy. A server may have the folder open. Rejects with {@link StoreRefused}. */
export async function backupSqlite({ dataDir, file, runtime, warn }: BackupOptions): Promise<void> {
  const folder = dataFolderAt(dataDir);
  if (examineFolder(folder, warn) === 0) throw new StoreRefused('unusable', `The data folder ${folder.path} has no store yet.`);
  createNew(file);
  try {
    await copyFrom(folder, file);
    editDatabase(file, (copy) => {
      requireIntactStore(copy, file);
      if (clearMarker(copy)) copy.prepare('UPDATE deployment SET runtime = ?').run(runtime);
    });
    syncFolders(dirname(resolve(file)), dirname(resolve(file)));
  } catch (error) {
    rmSync(file, { force: true });
    throw refusalOf(file, error);
  }
}

function createNew(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    const message = `The backup can't be written to ${file}: ${whyUnusable(error)} Nothing is overwritten.`;
    throw new StoreRefused('unusable', message, { cause: error });
  }
}

async function copyFrom(folder: DataFolder, file: string): Promise<void> {
  // Opens it without the lock, so a server can run, or start meanwhile.
  const database = openCurrent(folder);
  try {
    await backup(database, file, { rate: allPages });
  } finally {
    closeShared(folder, database);
  }
}

/** Throws unless the copy is an undamaged store of this version or an older one. `file` is for the messages. */
export function requireIntactStore(copy: DatabaseSync, file: string): void {
  const version = versionOf(copy);
  const id = Number(copy.prepare('PRAGMA application_id').get()?.['application_id']);
  if (version === 0 || id !== applicationId) throw new StoreRefused('damaged', `${file} is not a store of Skep. Nothing was changed.`);
  if (version > migrations.length) {
    throw new StoreRefused(
      'newer',
      `${file} was written by a newer version of Skep (its schema is ${version}, this version knows ${migrations.length}). Restore it `
        + 'with that version. Nothing was changed.',
    );
  }
  const [row] = copy.prepare('PRAGMA integrity_check(1)').all();
  if (row?.['integrity_check'] !== 'ok') throw damagedBackup(file);
}

function damagedBackup(file: string, cause?: unknown): StoreRefused {
  return new StoreRefused('damaged', `${file} is damaged, or no store of Skep. Use another backup. Nothing was changed.`, { cause });
}

/** Turns an error of SQLite into a refusal. Returns any other error unchanged. */
export function refusalOf(file: string, error: unknown): unknown {
  const reason = reasonOf(error);
  if (reason === null) return error;
  if (reason.code === 'damaged') return damagedBackup(file, error);
  return new StoreRefused('unusable', `${file} can't be used: ${sentenceOf(reason)} Nothing was changed.`, { cause: error });
}

/** Runs the work on a copy that nobody else has open. Leaves one file, without a log. */
export function editDatabase<T>(file: string, work: (copy: DatabaseSync) => T): T {
  using copy = new DatabaseSync(file);
  copy.exec('PRAGMA journal_mode = delete; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF');
  return work(copy);
}
