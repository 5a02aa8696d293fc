import type { CheckResult } from '../../../ports/check-result.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Store } from '../../../ports/store.ts';
import { createApiKeyStore } from './api-keys.ts';
import type { Connection } from './connection.ts';
import { createConversations } from './conversations.ts';
import { type DataFolder, prepareDataFolder } from './data-folder.ts';
import { createEvents } from './events.ts';
import { type FolderLock, lockFolder } from './folder-lock.ts';
import { createJournal } from './journal.ts';
import { createKnowledge, type KnowledgeOptions } from './knowledge.ts';
import { migrations } from './migrations.ts';
import { openAndMigrate, openCurrent, schemaVersionOf } from './open-database.ts';
import { isStoreRefused, StoreRefused } from './refusal.ts';
import { createSandboxes } from './sandboxes.ts';
import { createSpecs } from './specs.ts';
import { reasonOf } from './sqlite-error.ts';

export interface SqliteStoreOptions {
  /** The folder that holds everything; made, for its owner only, if it does not exist. */
  readonly dataDir: string;
  /**
   * A server takes the folder for itself. False is for a short visit, such as a command that makes a key: it works while
   * a server has the folder open, but leaves the schema as the server needs it.
   */
  readonly exclusive?: boolean;
  /** How long a write waits for a write of another process, in milliseconds. */
  readonly busyTimeoutMs?: number;
  /** How much knowledge is kept, in bytes. */
  readonly knowledgeBytes?: number;
  /** Tells how long knowledge was not used. */
  readonly clock?: Pick<Clock, 'now'>;
}

/**
 * The embedded store: one SQLite database in a folder. Rejects with {@link StoreRefused} when the folder can't be opened
 * or is open in another process, was written by a newer version, or is damaged; it is left unchanged then.
 */
export async function createSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { dataDir, exclusive = true, busyTimeoutMs = 5000, knowledgeBytes = 64 * 1024 * 1024, clock = { now: () => Date.now() } } = options;
  const folder = prepareDataFolder(dataDir);
  const knowledge = { maxBytes: knowledgeBytes, now: () => clock.now() };
  return exclusive ? openAsServer(folder, busyTimeoutMs, knowledge) : openAsVisitor(folder, busyTimeoutMs, knowledge);
}

function openAsServer(folder: DataFolder, busyTimeoutMs: number, knowledge: KnowledgeOptions): Store {
  const lock = lockFolder(folder);
  try {
    schemaVersionOf(folder);
    return storeOf(openAndMigrate(folder, busyTimeoutMs), lock, knowledge);
  } catch (error) {
    lock.release();
    throw error;
  }
}

function openAsVisitor(folder: DataFolder, busyTimeoutMs: number, knowledge: KnowledgeOptions): Store {
  if (schemaVersionOf(folder) < migrations.length) bringUpToDate(folder, busyTimeoutMs);
  return storeOf(openCurrent(folder, busyTimeoutMs), null, knowledge);
}

function bringUpToDate(folder: DataFolder, busyTimeoutMs: number): void {
  const lock = lockForMigration(folder);
  try {
    openAndMigrate(folder, busyTimeoutMs).close();
  } finally {
    lock.release();
  }
}

function lockForMigration(folder: DataFolder): FolderLock {
  try {
    return lockFolder(folder);
  } catch (error) {
    if (!isStoreRefused(error) || error.reason !== 'locked') throw error;
    throw new StoreRefused(
      'migration_due',
      `The data folder ${folder.path} is open in a server of an older version. Stop that server and start this version's, then try again.`,
      { cause: error },
    );
  }
}

/** The store over an open database; the lock, if there is one, is released with it. */
export function storeOf(connection: Connection, lock: FolderLock | null, knowledge: KnowledgeOptions): Store {
  const journal = createJournal(connection);
  return {
    name: 'sqlite',
    sandboxes: createSandboxes(connection, journal),
    conversations: createConversations(connection, journal),
    events: createEvents(connection, journal),
    apiKeys: createApiKeyStore(connection),
    specs: createSpecs(connection),
    listingCache: createKnowledge(connection, knowledge),
    check: async () => check(connection),
    close: async () => {
      try {
        connection.close();
      } finally {
        lock?.release();
      }
    },
  };
}

function check({ database }: Connection): CheckResult {
  if (!database.isOpen) return { ok: false, detail: 'sqlite: it is closed; start the server again' };
  try {
    const version = database.prepare('SELECT sqlite_version() AS version FROM sqlite_schema LIMIT 1').get()?.['version'];
    return { ok: true, detail: `sqlite: answers (SQLite ${String(version)}, schema ${migrations.length})` };
  } catch (error) {
    return { ok: false, detail: `sqlite: ${reasonOf(error) ?? 'it does not answer'}` };
  }
}
