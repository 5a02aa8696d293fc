import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { Kysely, sql } from 'kysely';
import { sentenceOf } from '../../shared/failure-sentences.ts';
import { isFailureOf } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type { Store } from '../../../ports/store.ts';
import { createApiKeyStore } from '../api-key-store.ts';
import { createConversationStore } from '../conversation-store.ts';
import type { Database, Db } from '../database.ts';
import { createEventLog } from '../event-store.ts';
import { createExecutionStore } from '../execution-store.ts';
import { createListingCache } from '../listing-cache.ts';
import type { DamageListener } from '../record-rows.ts';
import { createSandboxStore } from '../sandbox-store.ts';
import { createSpecStore } from '../spec-store.ts';
import {
  type DataFolder, dataFolderAt, isStoreRefused, lockFolder, otherDeployment, prepareDataFolder, StoreRefused,
} from './data-folder.ts';
import { createSqliteDialect } from './dialect.ts';
import { migrations } from './migrations.ts';
import { markClosed, markOpen, readDeployment, type StoreWarning } from './shutdown-marker.ts';
import { examineFolder, openAndMigrate, openCurrent, openInMemory, openReadOnly, reserveLog, withRefusals } from './open-database.ts';

const defaultBusyTimeoutMs = 5000;
const listingCacheBytes = 64 * 1024 * 1024;

export interface SqliteStoreOptions {
  /** The folder with all files. Created private to its owner if it does not exist. */
  readonly dataDir: string;
  /** True for a server, which locks the folder. False for a command beside a server: it does not change the schema while one runs. */
  readonly exclusive?: boolean;
  /** How long a write waits for a write of another process, in milliseconds. */
  readonly busyTimeoutMs?: number;
  /** Returns the id of the folder's deployment, given the stored one. If they differ, a server can't open it: it would find no sandbox. */
  readonly deploymentId?: (kept: string | null) => string;
  readonly warn?: (warning: StoreWarning) => void;
  readonly onDamaged?: DamageListener;
  /** Called with the path of the folder if a command beside a server found no store there, and created one. */
  readonly onCreated?: (path: string) => void;
}

/** Opens the SQLite database in a folder. If it can't be opened, rejects with {@link StoreRefused} and leaves the folder unchanged. */
export async function createSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { dataDir, exclusive = true } = options;
  const folder = prepareDataFolder(dataDir);
  if (exclusive) return openExclusive(folder, options);
  const schema = examineToUpgrade(folder, options);
  if (schema < migrations.length) migrateShared(folder);
  if (schema === 0) options.onCreated?.(folder.path);
  const database = openCurrent(folder);
  return storeOf('sqlite', database, () => closeShared(folder, database), options);
}

/** A store with an SQLite database in memory. Closing it deletes all data. */
export function createInMemoryStore(): Store {
  const database = openInMemory();
  return storeOf('memory', database, () => database.close());
}

/**
 * The content of a data folder.
 *
 * - `none`: no store yet.
 * - `older`: a store of an older version. Its records can't be read until a server migrates it.
 * - `current`: a readable store. A write fails with `store_unavailable`. The caller must close it.
 *
 * `hasSandboxes` is true if the runtime has sandboxes by the records: MISSING ones do not count.
 */
export type SqliteContents =
  | { readonly kind: 'none' }
  | { readonly kind: 'older'; readonly schema: number; readonly current: number; readonly hasSandboxes: boolean }
  | { readonly kind: 'current'; readonly hasSandboxes: boolean; readonly store: Store };

interface InspectionOptions {
  readonly warn?: (warning: StoreWarning) => void;
  /** The id of the folder's deployment. Refuses a store of another one. Default: accepts every store. */
  readonly deploymentId?: string | undefined;
}

/** Reads a data folder and changes nothing. A server may have it open. Rejects with {@link StoreRefused}. */
export async function inspectSqlite(dataDir: string, { warn, deploymentId }: InspectionOptions = {}): Promise<SqliteContents> {
  const folder = dataFolderAt(dataDir);
  const schema = examineFolder(folder, warn);
  if (schema === 0) return { kind: 'none' };
  using opened = new DisposableStack();
  const database = opened.use(openReadOnly(folder));
  if (deploymentId !== undefined) requireDeployment(folder, readDeployment(database, 'id'), deploymentId);
  // Every version of the schema has these columns.
  const present = database.prepare("SELECT 1 FROM sandboxes WHERE removed_at IS NULL AND status <> 'MISSING' LIMIT 1");
  const hasSandboxes = present.get() !== undefined;
  if (schema !== migrations.length) return { kind: 'older', schema, current: migrations.length, hasSandboxes };
  // From here on, the store closes it.
  opened.move();
  return { kind: 'current', hasSandboxes, store: storeOf('sqlite', database, () => database.close(), { isReadOnly: true }) };
}

function openExclusive(folder: DataFolder, options: SqliteStoreOptions): Store {
  using opened = new DisposableStack();
  const lock = opened.use(lockFolder(folder));
  examineToUpgrade(folder, options);
  const database = opened.use(openAndMigrate(folder));
  withRefusals(folder, () => {
    if (options.deploymentId !== undefined) claimForDeployment(folder, database, options.deploymentId);
    markOpen(folder, database);
    reserveLog(folder, database);
  });
  // From here on, the store closes them.
  opened.move();
  return storeOf('sqlite', database, () => closeExclusive(folder, database, lock), options);
}

/** Returns the version of the schema, and warns before it is upgraded. */
function examineToUpgrade(folder: DataFolder, { warn }: SqliteStoreOptions): number {
  const schema = examineFolder(folder, warn);
  if (schema > 0 && schema < migrations.length) warn?.({ code: 'upgrading', dataDir: folder.path });
  return schema;
}

function claimForDeployment(folder: DataFolder, database: DatabaseSync, deploymentId: (kept: string | null) => string): void {
  const kept = readDeployment(database, 'id');
  const id = deploymentId(kept);
  requireDeployment(folder, kept, id);
  if (kept === null) database.prepare('UPDATE deployment SET id = ?').run(id);
}

/** Throws `other_deployment` if the records belong to another deployment than the folder. */
function requireDeployment(folder: DataFolder, kept: string | null, id: string): void {
  if (kept !== null && kept !== id) throw otherDeployment(folder, kept, id);
}

function closeExclusive(folder: DataFolder, database: DatabaseSync, lock: Disposable): void {
  try {
    markClosed(folder, database);
  } finally {
    database.close();
    lock[Symbol.dispose]();
  }
}

/** If it is the last to close, merges the log of a crashed server and marks the store as closed. */
export function closeShared(folder: DataFolder, database: DatabaseSync): void {
  const lock = existsSync(folder.marker) ? tryLock(folder) : null;
  if (lock === null) database.close();
  else closeExclusive(folder, database, lock);
}

/** Returns null if another process holds the lock. */
function tryLock(folder: DataFolder): Disposable | null {
  try {
    return lockFolder(folder);
  } catch (error) {
    if (isStoreRefused(error) && error.reason === 'locked') return null;
    throw error;
  }
}

function migrateShared(folder: DataFolder): void {
  using lock = tryLock(folder);
  if (lock === null) {
    throw new StoreRefused(
      'migration_due',
      `The data folder ${folder.path} is open in a server of an older version. Stop that server and start this version's, then try again.`,
    );
  }
  openAndMigrate(folder).close();
}

const openStores = new Set<() => void>();

/** Node closes the databases at the end of the process, but does not mark the stores as closed. */
function closeStores(): void {
  for (const close of openStores) close();
}

type OpenedOptions = Pick<SqliteStoreOptions, 'busyTimeoutMs' | 'onDamaged'> & { readonly isReadOnly?: true };

function storeOf(name: 'sqlite' | 'memory', database: DatabaseSync, close: () => void, options: OpenedOptions = {}): Store {
  const { busyTimeoutMs = defaultBusyTimeoutMs, isReadOnly = false, onDamaged } = options;
  const db = new Kysely<Database>({ dialect: createSqliteDialect(database, busyTimeoutMs) });
  const log = createEventLog(db);
  const closeOnce = (): void => {
    openStores.delete(closeOnce);
    if (database.isOpen) close();
  };
  openStores.add(closeOnce);
  process.off('exit', closeStores).on('exit', closeStores);
  return {
    name,
    sandboxes: createSandboxStore(db, log, onDamaged),
    conversations: createConversationStore(db, log, onDamaged),
    executions: createExecutionStore(db, onDamaged),
    events: log,
    apiKeys: createApiKeyStore(db),
    specs: createSpecStore(db),
    listingCache: createListingCache(db, { maxBytes: listingCacheBytes, now: Date.now }),
    check: () => check(name, db, isReadOnly),
    close: async () => closeOnce(),
  };
}

/** Also writes, since a full disk can still be read. */
async function check(name: string, db: Db, isReadOnly: boolean): Promise<CheckResult> {
  try {
    if (!isReadOnly) await sql.raw(`PRAGMA user_version = ${migrations.length}`).execute(db);
    const { rows } = await sql<{ version: string }>`SELECT sqlite_version() AS version FROM sqlite_schema LIMIT 1`.execute(db);
    return { ok: true, detail: `${name}: answers (SQLite ${rows[0]?.version}, schema ${migrations.length})` };
  } catch (error) {
    const detail = isFailureOf(error, 'store_unavailable') ? sentenceOf(error.context.reason) : 'It does not answer.';
    return { ok: false, detail: `${name}: ${detail}` };
  }
}
