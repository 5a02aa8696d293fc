import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { createSqliteStore, inspectSqlite } from '../../../../src/adapters/store/sqlite/index.ts';
import { migrate } from '../../../../src/adapters/store/sqlite/migrate.ts';
import { migrations } from '../../../../src/adapters/store/sqlite/migrations.ts';
import { unlimited } from '../../../../src/domain/admission-limits.ts';
import { someConversation, someSandbox } from '../../../contracts/records.ts';
import { eachFolder, startChild } from './processes.ts';

let dataDir: string;
let database: string;

eachFolder((path) => {
  dataDir = join(path, 'data');
  database = join(dataDir, 'skep.db');
});

/** Returns a fingerprint of each file. Do not call it while this process has the folder open: it would drop SQLite's locks. */
function fingerprints(): Record<string, string> {
  return Object.fromEntries(
    readdirSync(dataDir).map((file) => {
      const path = join(dataDir, file);
      const { mode, mtimeMs } = statSync(path);
      return [file, `${mode} ${mtimeMs} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`];
    }),
  );
}

/** Writes a database as Skep wrote it with this schema version. */
function writeVersion(version: number, sql = ''): void {
  mkdirSync(dataDir);
  const older = new DatabaseSync(database);
  older.exec('PRAGMA journal_mode = wal');
  migrate(older, migrations.slice(0, version));
  older.exec(sql);
  older.close();
}

describe('inspectSqlite()', () => {
  test('returns `none` if the folder does not exist, and does not create it', async () => {
    expect(await inspectSqlite(dataDir)).toEqual({ kind: 'none' });
    expect(existsSync(dataDir)).toBe(false);
  });

  test.each(migrations.slice(1).map((_, index) => index + 1))('does not upgrade a database of version %i', async (schema) => {
    writeVersion(schema);
    const before = fingerprints();
    expect(await inspectSqlite(dataDir)).toEqual({ kind: 'older', schema, current: migrations.length, hasSandboxes: false });
    expect(fingerprints()).toEqual(before);
  });

  test.each([['RUNNING', true], ['ERROR', true], ['MISSING', false]])('reports whether an older database has sandboxes that are not MISSING: %s', async (status, hasSandboxes) => {
    writeVersion(
      1,
      `INSERT INTO sandboxes (id, owner_id, spec_id, status, status_since, session_api_key, generation, created_at, updated_at,
         last_active_at, running, exposed_urls, spec)
       VALUES ('one', 'ann', 'node', '${status}', 1, 'key', 1, 1, 1, 1, 1, '[]', '{}')`,
    );
    expect(await inspectSqlite(dataDir)).toMatchObject({ kind: 'older', hasSandboxes });
  });

  test('reports whether a current database has sandboxes that are not MISSING', async () => {
    const store = await createSqliteStore({ dataDir });
    const found: unknown[] = [];
    for (const sandbox of [someSandbox('lost', { status: 'MISSING' }), someSandbox('removed', { deletedAt: 1, removedAt: 1 }), someSandbox('there')]) {
      await store.sandboxes.insert(sandbox, unlimited);
      const contents = await inspectSqlite(dataDir);
      found.push(contents);
      if (contents.kind === 'current') await contents.store.close();
    }
    await store.close();
    expect(found).toMatchObject([{ hasSandboxes: false }, { hasSandboxes: false }, { hasSandboxes: true }]);
  });

  test('opens a current database read-only and changes no file and no mode', async () => {
    const written = await createSqliteStore({ dataDir });
    await written.conversations.insert(someConversation('kept'));
    await written.close();
    chmodSync(database, 0o644);
    const before = fingerprints();
    const contents = await inspectSqlite(dataDir);
    if (contents.kind !== 'current') throw new Error(`it is ${contents.kind}`);
    expect(await contents.store.check()).toMatchObject({ ok: true });
    expect(await contents.store.conversations.find('kept')).not.toBeNull();
    await expect(contents.store.conversations.insert(someConversation('new'))).rejects.toMatchObject({ code: 'store_unavailable' });
    await contents.store.close();
    expect(fingerprints()).toEqual(before);
  });

  test('sees the latest records while a server has the folder open', async () => {
    const server = startChild('hold', dataDir);
    await server.said(1);
    const visitor = await createSqliteStore({ dataDir, exclusive: false });
    await visitor.conversations.insert(someConversation('fresh'));
    await visitor.close();
    const contents = await inspectSqlite(dataDir);
    if (contents.kind !== 'current') throw new Error(`it is ${contents.kind}`);
    expect(await contents.store.conversations.find('fresh')).not.toBeNull();
    await contents.store.close();
  });

  test('fails with `other_deployment` if a server of the folder would refuse the store, whatever its version', async () => {
    await (await createSqliteStore({ dataDir, deploymentId: () => 'dep-1' })).close();
    const contents = await inspectSqlite(dataDir, { deploymentId: 'dep-1' });
    if (contents.kind === 'current') await contents.store.close();
    await expect(inspectSqlite(dataDir, { deploymentId: 'dep-2' })).rejects.toMatchObject({ reason: 'other_deployment' });
    const older = new DatabaseSync(database);
    older.exec(`PRAGMA user_version = ${migrations.length - 1}`);
    older.close();
    await expect(inspectSqlite(dataDir, { deploymentId: 'dep-2' })).rejects.toMatchObject({ reason: 'other_deployment' });
    older.open();
    older.exec('DROP TABLE deployment');
    older.close();
    expect(await inspectSqlite(dataDir, { deploymentId: 'dep-2' })).toMatchObject({ kind: 'older' });
  });

  test('fails with `damaged` if the file is no database', async () => {
    mkdirSync(dataDir);
    writeFileSync(database, 'no database, but long enough to be looked at. '.repeat(100));
    await expect(inspectSqlite(dataDir)).rejects.toMatchObject({ reason: 'damaged' });
  });
});
