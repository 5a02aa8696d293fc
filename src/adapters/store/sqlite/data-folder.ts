import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { StoreRefused } from './refusal.ts';

/** The files of a data folder. SQLite keeps its own beside the database (`-wal`, `-shm`). */
export interface DataFolder {
  readonly path: string;
  readonly database: string;
  readonly lock: string;
  /** Tells which process holds the lock, for a person; nothing is decided by it. */
  readonly holder: string;
}

/**
 * Makes the folder, if it is not there, for its owner's eyes only. An existing one keeps its mode, since it may serve
 * other purposes too; the files in it are the owner's only in any case.
 */
export function prepareDataFolder(dataDir: string): DataFolder {
  const folder = dataFolderAt(dataDir);
  const { path } = folder;
  try {
    const made = makeFolders(path);
    if (made !== null) syncFolders(path, dirname(made));
  } catch (error) {
    throw unusable(path, error);
  }
  return folder;
}

/** The folder as it would be, whether it is there or not. */
export function dataFolderAt(dataDir: string): DataFolder {
  const path = resolve(dataDir);
  return { path, database: join(path, 'skep.db'), lock: join(path, 'skep.lock'), holder: join(path, 'skep.pid') };
}

/**
 * Makes the folder and those above it, one by one: Node's own way goes on for ever where a file system takes no new
 * folder (`/proc`). Answers with the topmost that was made; null where it was there.
 */
function makeFolders(path: string): string | null {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return null;
  const parent = dirname(path);
  const above = statSync(parent, { throwIfNoEntry: false }) === undefined ? makeFolders(parent) : null;
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
  return above ?? path;
}

/**
 * Makes an empty file that only its owner may read, unless it exists. Never opens one that exists: closing it would
 * drop the locks that SQLite holds on it for this process.
 */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/** Takes the permissions of others off a file, one that was restored from a copy, for instance. */
export function makePrivate(path: string): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode;
  if (mode !== undefined && (mode & 0o077) !== 0) chmodSync(path, 0o600);
}

export function unusable(path: string, error: unknown): StoreRefused {
  const why = words[codeOf(error) ?? ''] ?? (error instanceof Error ? error.message : String(error));
  return new StoreRefused(
    'unusable',
    `The data folder ${path} can't be used: ${why}. Make it writable for this user, or choose another data folder (SKEP_DATA_DIR).`,
    { cause: error },
  );
}

const words: Readonly<Record<string, string>> = {
  ENOENT: 'no folder can be made there',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOTDIR: 'a part of its path is not a folder',
  EEXIST: 'it is not a folder',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
};

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** A folder survives a power failure once its parent's entry for it is on the disk. */
function syncFolders(from: string, to: string): void {
  if (process.platform === 'win32') return;
  for (let folder = from; ; folder = dirname(folder)) {
    const handle = openSync(folder, 'r');
    fsyncSync(handle);
    closeSync(handle);
    if (folder === to) return;
  }
}
