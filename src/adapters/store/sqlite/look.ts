import type { Store } from '../../../ports/store.ts';
import type { Connection } from './connection.ts';
import { dataFolderAt } from './data-folder.ts';
import { migrations } from './migrations.ts';
import { openReadOnly, schemaVersionOf } from './open-database.ts';
import { storeOf } from './store.ts';

/**
 * What a data folder has.
 *
 * - `none`: no store yet.
 * - `older`: one of an older version, which the next server brings up to date. Until then its records can't be read.
 * - `current`: one that can be read; what would write fails with `store_unavailable`. It is the caller's to close.
 */
export type SqliteLook =
  | { readonly kind: 'none' }
  | { readonly kind: 'older'; readonly schema: number; readonly current: number; readonly hasSandboxes: boolean }
  | { readonly kind: 'current'; readonly store: Store };

/** Looks into a data folder and changes nothing in it, whether a server has it open or not. Rejects with `StoreRefused`. */
export async function lookIntoSqlite(dataDir: string): Promise<SqliteLook> {
  const folder = dataFolderAt(dataDir);
  const schema = schemaVersionOf(folder);
  if (schema === 0) return { kind: 'none' };
  const connection = openReadOnly(folder, 1000);
  if (schema === migrations.length) return { kind: 'current', store: storeOf(connection, null, { maxBytes: 0, now: () => Date.now() }) };
  try {
    return { kind: 'older', schema, current: migrations.length, hasSandboxes: hasSandboxes(connection) };
  } finally {
    connection.close();
  }
}

/** Every schema has had the table. */
function hasSandboxes({ database }: Connection): boolean {
  return database.prepare('SELECT 1 FROM sandboxes LIMIT 1').get() !== undefined;
}
