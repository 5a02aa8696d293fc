import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSqliteStore } from '../../../../src/adapters/store/sqlite/index.ts';
import type { Connections, StoreHarness } from '../../../contracts/store.ts';

export function newFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'skep-sqlite-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Two connections to each store: a server's and a visitor's. */
export const sqliteHarness: StoreHarness = {
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
};

async function connect(dataDir: string): Promise<Connections> {
  return [await createSqliteStore({ dataDir }), await createSqliteStore({ dataDir, exclusive: false })];
}

async function close(connections: Connections): Promise<void> {
  for (const store of connections) await store.close();
}
