import { randomUUID } from 'node:crypto';
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { asSentence } from '../../shared/message-formatting.ts';
import { sentenceOf } from '../../shared/failure-sentences.ts';
import { errorCode } from '../../shared/system-errors.ts';
import { isAccessDenied, isBusy, reasonOf } from './sqlite-error.ts';

/** The files of a data folder. SQLite keeps its own files beside the database (`-wal`, `-shm`). */
export interface DataFolder {
  readonly path: string;
  readonly database: string;
  readonly lock: string;
  /** Exists while a server has the store open, see `shutdown-marker.ts`. */
  readonly marker: string;
  /** The deployment's own file. A server writes it after it has created the database. */
  readonly deployment: string;
}

/** Creates the folder if it does not exist, private to its owner. An existing folder keeps its mode, since others may use it too. */
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

export function dataFolderAt(dataDir: string): DataFolder {
  const path = resolve(dataDir);
  const file = (name: string): string => join(path, name);
  return {
    path, database: file('skep.db'), lock: file('skep.lock'), marker: file('skep.db-open'), deployment: file('deployment.json'),
  };
}

// More than a small write of the store needs.
const probeBytes = 256 * 1024;

/**
 * Throws `StoreRefused` (`unusable`) if the folder can't be created or written. To find out, writes a file there or in the parent, and
 * removes it.
 */
export function requireWritable(dataDir: string): void {
  const { path } = dataFolderAt(dataDir);
  try {
    let folder = path;
    while (statSync(folder, { throwIfNoEntry: false }) === undefined) folder = dirname(folder);
    const probe = join(folder, `skep-probe-${randomUUID()}`);
    const file = openSync(probe, 'wx', 0o600);
    try {
      writeFileSync(file, Buffer.alloc(probeBytes));
    } finally {
      closeSync(file);
      rmSync(probe);
    }
  } catch (error) {
    throw unusable(path, error);
  }
}

/** The folders that this process has locked. */
const lockedHere = new Set<string>();

/**
 * Locks a data folder for one server, until the result is disposed of. The lock is a transaction on a separate SQLite file, so the
 * operating system drops it when the process ends.
 */
export function lockFolder(folder: DataFolder): Disposable {
  using opened = new DisposableStack();
  try {
    createPrivateFile(folder.lock);
    const database = opened.use(new DatabaseSync(folder.lock, { timeout: 0 }));
    // The journal is in memory, so the lock leaves no second file behind.
    database.exec('PRAGMA journal_mode = memory; BEGIN EXCLUSIVE');
  } catch (error) {
    throw isBusy(error) ? lockedBy(folder, error) : unusable(folder.path, error);
  }
  lockedHere.add(folder.path);
  opened.defer(() => lockedHere.delete(folder.path));
  return opened.move();
}

/** Never opens an existing file: closing it would drop the locks that SQLite holds on it for this process. */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}

/** Returns a URL to open the database. It is immutable if there is no write-ahead log, so no writer. Then SQLite creates no files. */
export function urlWithoutLocks(path: string): URL {
  const url = pathToFileURL(path);
  if (sizeOf(`${path}-wal`) === 0) url.searchParams.set('immutable', '1');
  return url;
}

/** Returns 0 if the file does not exist. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

export function makePrivate(path: string): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode;
  if (mode !== undefined && (mode & 0o077) !== 0) chmodSync(path, 0o600);
}

export function otherDeployment(folder: DataFolder, kept: string, id: string): StoreRefused {
  return new StoreRefused(
    'other_deployment',
    `The store belongs to the deployment ${kept}, and the data folder ${folder.path} to the deployment ${id} (deployment.json). Its `
      + 'sandboxes would not be found. Put the deployment.json back that belongs to the store, or choose another data folder '
      + '(SKEP_DATA_DIR). Nothing was changed.',
  );
}

/** `isUnchanged`: whether it is certain that nothing in the folder was changed. */
export function unusable(path: string, error: unknown, isUnchanged = true): StoreRefused {
  const isFull = errorCode(error) === 'ENOSPC' || reasonOf(error)?.code === 'disk_full';
  const isDenied = /^(EACCES|EPERM|EROFS)$/.test(errorCode(error) ?? '') || isAccessDenied(error);
  const advice = isFull ? 'Free some space, or choose' : isDenied ? 'Make it writable for this user, or choose' : 'Choose';
  const message = `The data folder ${path} can't be used: ${whyUnusable(error)} ${advice} another data folder (SKEP_DATA_DIR).`;
  return new StoreRefused('unusable', isUnchanged ? `${message} Nothing was changed.` : message, { cause: error });
}

/** Returns why the operating system or SQLite refuses a path, as a sentence. */
export function whyUnusable(error: unknown): string {
  const reason = reasonOf(error);
  if (reason !== null) return sentenceOf(reason);
  return asSentence(messages[errorCode(error) ?? ''] ?? (error instanceof Error ? error.message : String(error)));
}

const messages: Readonly<Record<string, string>> = {
  ENOENT: 'no folder can be made there',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOTDIR: 'a part of its path is not a folder',
  EEXIST: 'a file is there already',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
};

/** Returns the topmost folder that was created, or null. Node's recursive `mkdir` never ends on a file system like `/proc`. */
function makeFolders(path: string): string | null {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return null;
  const parent = dirname(path);
  const above = statSync(parent, { throwIfNoEntry: false }) === undefined ? makeFolders(parent) : null;
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
  return above ?? path;
}

/** Syncs each folder up to `to`. A new folder survives a power failure only after its parent is synced. */
export function syncFolders(from: string, to: string): void {
  if (process.platform === 'win32') return;
  for (let folder = from; ; folder = dirname(folder)) {
    const handle = openSync(folder, 'r');
    fsyncSync(handle);
    closeSync(handle);
    if (folder === to) return;
  }
}

function lockedBy(folder: DataFolder, cause: unknown): StoreRefused {
  const where = lockedHere.has(folder.path)
    ? 'in this process already. Close it'
    : 'in another process. Stop that one';
  const message = `The data folder ${folder.path} is open ${where} first, or choose another data folder (SKEP_DATA_DIR).`;
  return new StoreRefused('locked', message, { cause });
}

/**
 * The reason why a data folder can't be opened.
 *
 * - `newer`: a newer version of the program wrote it.
 * - `locked`: another process, or another part of this one, has it open.
 * - `migration_due`: an older version wrote it, and it can't be migrated while a server has it open.
 * - `unusable`: the folder can't be created, read or written.
 * - `damaged`: the file is no database, or another program's.
 * - `other_deployment`: its records and its folder belong to different deployments.
 * - `log_missing`: it was copied without its write-ahead log.
 * - `log_of_another`: the write-ahead log beside it belongs to another database.
 */
export type RefusalReason =
  | 'newer' | 'locked' | 'migration_due' | 'unusable' | 'damaged' | 'other_deployment' | 'log_missing' | 'log_of_another';

const marker = Symbol.for('skep.store-refused');

/** The data folder is refused, and nothing in it was changed. The message says what to do to the person who starts the program. */
export class StoreRefused extends Error {
  readonly [marker] = true;
  readonly reason: RefusalReason;
  /** The path of the refused database if it can be restored in its own place; otherwise null. */
  readonly database: string | null;

  constructor(reason: RefusalReason, message: string, options: { readonly cause?: unknown; readonly database?: string } = {}) {
    super(message, options);
    this.name = 'StoreRefused';
    this.reason = reason;
    this.database = options.database ?? null;
  }
}

/** Recognises a refusal by its marker, because the class differs if the package is loaded twice. */
export function isStoreRefused(error: unknown): error is StoreRefused {
  return typeof error === 'object' && error !== null && marker in error;
}
