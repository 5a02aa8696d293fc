import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Kysely, type LogEvent } from 'kysely';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { createSqliteDialect } from '../../../../src/adapters/store/sqlite/dialect.ts';
import { createInMemoryStore, createSqliteStore } from '../../../../src/adapters/store/sqlite/index.ts';
import { openInMemory } from '../../../../src/adapters/store/sqlite/open-database.ts';
import { createListingCache } from '../../../../src/adapters/store/listing-cache.ts';
import type { ListingCacheHarness } from '../../../contracts/listing-cache.ts';
import type { Connections, StoreHarness } from '../../../contracts/store.ts';
import { createManualClock } from '../../../doubles/memory/index.ts';

export function newFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'skep-sqlite-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Opens the database as a store does, for tests that need more than its methods. `log` gets each statement. */
export function openDb(path: string, log: (event: LogEvent) => void = () => {}) {
  const sqlite = new DatabaseSync(path);
  return { sqlite, db: new Kysely<Database>({ dialect: createSqliteDialect(sqlite, 0), log }) };
}

/** Two connections to each store: a server's and a visitor's. */
export const sqliteHarness: ListingCacheHarness = {
  traits: { durable: true },
  async open() {
    const folder = newFolder();
    let connections = await connect(folder.path);
    return {
      connections,
      async reopen() {
        await close(connections);
        connections = await connect(folder.path);
        return connections;
      },
      async dispose() {
        await close(connections);
        folder.remove();
      },
    };
  },
  async openBounded(maxBytes) {
    const clock = createManualClock();
    const db = new Kysely<Database>({ dialect: createSqliteDialect(openInMemory(), 0) });
    return { cache: createListingCache(db, { maxBytes, now: () => clock.now() }), pass: async (ms) => clock.advance(ms), dispose: () => db.destroy() };
  },
};

export const inMemoryHarness: StoreHarness = {
  traits: { durable: false },
  async open() {
    let store = createInMemoryStore();
    return {
      connections: [store],
      async reopen() {
        await store.close();
        store = createInMemoryStore();
        return [store];
      },
      dispose: () => store.close(),
    };
  },
};

async function connect(dataDir: string): Promise<Connections> {
  return [await createSqliteStore({ dataDir }), await createSqliteStore({ dataDir, exclusive: false })];
}

async function close(connections: Connections): Promise<void> {
  for (const store of connections) await store.close();
}
