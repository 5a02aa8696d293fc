import { existsSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { errorCode } from '../../shared/system-errors.ts';
import { allPages, editDatabase, refusalOf, requireIntactStore } from './backup.ts';
import {
  createPrivateFile, type DataFolder, isStoreRefused, lockFolder, otherDeployment, prepareDataFolder, StoreRefused, syncFolders,
  unusable, urlWithoutLocks,
} from './data-folder.ts';
import { migrate } from './migrate.ts';
import { openReadOnly } from './open-database.ts';
import { clearMarker, readDeployment } from './shutdown-marker.ts';
import { reasonOf } from './sqlite-error.ts';

/** How much the event numbers are raised, so that no number written since the backup is used twice. */
const eventNumberGap = 1_000_000_000;

export interface RestoreOptions {
  readonly dataDir: string;
  readonly file: string;
  /** The deployment of the data folder; null if it has none yet. */
  readonly deploymentId: string | null;
  /** In milliseconds since the epoch. */
  readonly now: number;
}

export interface RestoredStore {
  /** The deployment of the records. Null in a backup of an older version. */
  readonly deploymentId: string | null;
  /** The runtime of the sandboxes. Null if the backup does not contain it. */
  readonly runtime: string | null;
  /** The new path of the replaced store. Null if there was none. */
  readonly replaced: string | null;
  /** True if keys that were revoked in the replaced store stay revoked. Otherwise, keys revoked since the backup are valid again. */
  readonly keepsRevocations: boolean;
}

/**
 * Replaces the store of a data folder by a backup. Rejects with {@link StoreRefused}, and changes nothing, if a server has the folder
 * open, if it can't be written, or if the file is damaged, is no store of Skep, was written by a newer version, or belongs to another
 * deployment.
 *
 * The restored store differs from the backup, because of the time that has passed since then:
 *
 * - Pool members are left out: each may have been given to an owner since then, and must not get a second owner.
 * - Every sandbox counts as active now, so that the idle policy deletes none for the time since the backup.
 * - Keys that were revoked stay revoked, if the replaced store can be read.
 * - New events have higher numbers than all earlier ones, so that a reader who resumes after an event misses none.
 */
export async function restoreSqlite(options: RestoreOptions): Promise<RestoredStore> {
  const { dataDir, file, now } = options;
  if (!existsSync(file)) throw new StoreRefused('unusable', `There is no file ${file}.`);
  const folder = prepareDataFolder(dataDir);
  using _ = lockFolder(folder);
  const draft = join(folder.path, 'skep.db-restoring');
  try {
    return { ...(await writeDraft(folder, draft, options)), replaced: replaceDatabase(folder, draft, now) };
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Writes the restored store beside the old one. */
async function writeDraft(
  folder: DataFolder, draft: string, { file, deploymentId, now }: RestoreOptions,
): Promise<Omit<RestoredStore, 'replaced'>> {
  try {
    const revoked = revokedKeys(folder);
    rmSync(draft, { force: true });
    createPrivateFile(draft);
    await copyFile(file, draft);
    return editDatabase(draft, (copy) => {
      requireIntactStore(copy, file);
      migrate(copy);
      const kept = { deploymentId: readDeployment(copy, 'id'), runtime: readDeployment(copy, 'runtime') };
      if (kept.deploymentId !== null && deploymentId !== null && kept.deploymentId !== deploymentId) {
        throw otherDeployment(folder, kept.deploymentId, deploymentId);
      }
      adjustToNow(copy, now);
      const revoke = copy.prepare('UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL');
      for (const { id = null, revoked_at: at = null } of revoked ?? []) revoke.run(at, id);
      return { ...kept, keepsRevocations: revoked !== null };
    });
  } catch (error) {
    const reason = reasonOf(error);
    const isOfFolder = reason === null ? errorCode(error) !== undefined : reason.code === 'disk_full';
    throw isOfFolder ? unusable(folder.path, error) : refusalOf(file, error);
  }
}

/** Returns null if there is no store, or it can't be read. A damaged store may be the reason for the restore. */
function revokedKeys(folder: DataFolder) {
  if (!existsSync(folder.database)) return null;
  try {
    using database = openReadOnly(folder);
    return database.prepare('SELECT id, revoked_at FROM api_keys WHERE revoked_at IS NOT NULL').all();
  } catch (error) {
    if (!isStoreRefused(error) && reasonOf(error) === null) throw error;
    return null;
  }
}

async function copyFile(file: string, draft: string): Promise<void> {
  using source = new DatabaseSync(urlWithoutLocks(resolve(file)), { readOnly: true });
  await backup(source, draft, { rate: allPages });
}

function adjustToNow(copy: DatabaseSync, now: number): void {
  const newest = Number(copy.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'events'").get()?.['seq'] ?? 0);
  copy.exec(`
    BEGIN IMMEDIATE;
    DELETE FROM sandboxes WHERE owner_id = '' AND deleted_at IS NULL;
    UPDATE sandboxes SET status_since = ${now}, last_active_at = ${now} WHERE deleted_at IS NULL;
    DELETE FROM sqlite_sequence WHERE name = 'events';
    INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ${newest + eventNumberGap});
    COMMIT;
  `);
  clearMarker(copy);
}

/** Moves the old store away and the new one into its place. Returns the new path of the old one. */
function replaceDatabase(folder: DataFolder, draft: string, now: number): string | null {
  const { database } = folder;
  const aside = `${database}.replaced-${new Date(now).toISOString().replaceAll(/[:.]/g, '-')}`;
  const isReplaced = existsSync(database);
  // Moves the log first: beside the new file, it would damage that file.
  if (existsSync(`${database}-wal`)) renameSync(`${database}-wal`, `${aside}-wal`);
  rmSync(`${database}-shm`, { force: true });
  if (isReplaced) renameSync(database, aside);
  renameSync(draft, database);
  rmSync(folder.marker, { force: true });
  syncFolders(folder.path, folder.path);
  return isReplaced ? aside : null;
}
