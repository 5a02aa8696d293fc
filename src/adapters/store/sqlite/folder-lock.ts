import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { createPrivateFile, type DataFolder, unusable } from './data-folder.ts';
import { StoreRefused } from './refusal.ts';

/** The right to be the one server of a data folder. */
export interface FolderLock {
  release(): void;
}

/**
 * Takes the folder for this process. The lock is a transaction that stays open on a small SQLite file of its own, so
 * that the operating system drops it with the process, however that ends, and no stale file is ever in the way.
 */
export function lockFolder(folder: DataFolder): FolderLock {
  const database = openLock(folder);
  try {
    // The journal is kept in memory, so that the lock leaves no second file behind.
    database.exec('PRAGMA journal_mode = memory; BEGIN EXCLUSIVE');
    writeFileSync(folder.holder, `${process.pid}\n`, { mode: 0o600 });
  } catch (error) {
    database.close();
    throw isBusy(error) ? lockedBy(folder, error) : unusable(folder.path, error);
  }
  return {
    release() {
      if (!database.isOpen) return;
      rmSync(folder.holder, { force: true });
      database.close();
    },
  };
}

function openLock(folder: DataFolder): DatabaseSync {
  try {
    createPrivateFile(folder.lock);
    return new DatabaseSync(folder.lock, { timeout: 0 });
  } catch (error) {
    throw unusable(folder.path, error);
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === 5;
}

function lockedBy(folder: DataFolder, cause: unknown): StoreRefused {
  return new StoreRefused(
    'locked',
    `The data folder ${folder.path} is open in another process${holderOf(folder)}. ` +
      'Stop that one first, or choose another data folder (SKEP_DATA_DIR).',
    { cause },
  );
}

function holderOf(folder: DataFolder): string {
  try {
    const pid = readFileSync(folder.holder, 'utf8').trim();
    return /^\d{1,10}$/.test(pid) ? ` (probably ${pid})` : '';
  } catch {
    return '';
  }
}
