import { copyFileSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, describe, expect, test } from 'vitest';
import { type BackupOptions, backupSqlite, createSqliteStore, isStoreRefused } from '../../../../src/adapters/store/sqlite/index.ts';
import { type RefusalReason, restoreSqlite, type RestoreOptions } from '../../../../src/adapters/store/sqlite/index.ts';
import { migrate } from '../../../../src/adapters/store/sqlite/migrate.ts';
import { migrations } from '../../../../src/adapters/store/sqlite/migrations.ts';
import { unlimited } from '../../../../src/domain/admission-limits.ts';
import type { Store } from '../../../../src/ports/store.ts';
import { someConversation, someEvent, somePooled, someSandbox, someTime } from '../../../contracts/records.ts';
import { eachFolder, startChild } from './processes.ts';

let folder: string;
let dataDir: string;
let file: string;
const opened: Store[] = [];

eachFolder((path) => {
  folder = path;
  dataDir = join(path, 'data');
  file = join(path, 'skep-backup.db');
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
});

const now = someTime + 10 * 86_400_000;

const backup = async (changes: Partial<BackupOptions> = {}): Promise<void> =>
  await backupSqlite({ dataDir, file, runtime: 'docker', warn: ({ code }) => expect.unreachable(code), ...changes });

async function open(deployment = 'dep-1', exclusive = true): Promise<Store> {
  const store = await createSqliteStore({ dataDir, exclusive, deploymentId: () => deployment });
  opened.push(store);
  return store;
}

/** Creates a store with one conversation, and a backup of it. */
async function made(): Promise<void> {
  const store = await open();
  await store.conversations.insert(someConversation('kept'));
  await backup();
  await store.close();
}

const restore = async (changes: Partial<RestoreOptions> = {}) =>
  await restoreSqlite({ dataDir, file, deploymentId: 'dep-1', now, ...changes });

async function refused(work: Promise<unknown>, reason: RefusalReason, ...parts: string[]): Promise<void> {
  const error = await work.catch((error: unknown) => error);
  if (!isStoreRefused(error)) throw new Error('it was not refused', { cause: error });
  expect(error.reason).toBe(reason);
  for (const part of parts) expect(error.message).toContain(part);
}

describe('A backup', () => {
  test('is one private file with all committed data, also while a server writes', async () => {
    const child = startChild('write', dataDir, 'w');
    await child.said(50);
    const [written = ''] = child.lines.slice(-1);
    await backup();
    await child.said(child.lines.length + 10);
    await child.kill();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).toSorted()).toEqual(['data', 'skep-backup.db']);
    const copy = new DatabaseSync(file, { readOnly: true });
    expect(copy.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    expect(copy.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'delete' });
    expect(copy.prepare('SELECT id FROM conversations WHERE id = ?').get(written)).toEqual({ id: written });
    copy.close();
  });

  test('works without a running server and does not change the data folder', async () => {
    await (await open()).close();
    const before = readdirSync(dataDir);
    await backup();
    expect(readdirSync(dataDir)).toEqual(before);
  });

  test('overwrites no file, and leaves no file if it fails', async () => {
    await made();
    const before = readFileSync(file);
    await refused(backup(), 'unusable', file, 'Nothing is overwritten');
    expect(readFileSync(file).equals(before)).toBe(true);
    await refused(backup({ file: join(folder, 'no', 'folder.db') }), 'unusable', 'no/folder.db');
    await refused(backup({ dataDir: join(folder, 'empty'), file: join(folder, 'b.db') }), 'unusable', 'no store yet');
    expect(readdirSync(folder).toSorted()).toEqual(['data', 'skep-backup.db']);
  });
});

describe('A restore', () => {
  test('brings the records back and keeps the replaced database under another name', async () => {
    await made();
    const store = await open();
    await store.conversations.insert(someConversation('later'));
    await store.close();
    const restored = await restore();
    expect(restored).toMatchObject({ deploymentId: 'dep-1', runtime: 'docker', replaced: expect.stringContaining('skep.db.replaced-2026-') });
    const after = await open();
    expect([await after.conversations.find('kept'), await after.conversations.find('later')]).toEqual([someConversation('kept'), null]);
    const replaced = new DatabaseSync(restored.replaced ?? '', { readOnly: true });
    expect(replaced.prepare('SELECT id FROM conversations ORDER BY id').all()).toEqual([{ id: 'kept' }, { id: 'later' }]);
    replaced.close();
  });

  test('keeps the write-ahead log of a crashed server with the replaced database', async () => {
    await made();
    const child = startChild('write', dataDir, 'w');
    await child.said(1);
    await child.kill();
    const { replaced } = await restore();
    expect(await (await open()).conversations.find('w-0')).toBeNull();
    const aside = new DatabaseSync(replaced ?? '');
    expect(aside.prepare("SELECT id FROM conversations WHERE id = 'w-0'").get()).toEqual({ id: 'w-0' });
    aside.close();
  });

  test('creates the data folder if it does not exist', async () => {
    await made();
    dataDir = join(folder, 'another', 'machine');
    expect(await restore({ deploymentId: null })).toMatchObject({ deploymentId: 'dep-1', replaced: null });
    expect(await (await open()).conversations.find('kept')).not.toBeNull();
  });

  test('is refused while a server has the folder open, and the server can still write', async () => {
    await made();
    const store = await open();
    await refused(restore(), 'locked', 'Close it first');
    await store.conversations.insert(someConversation('later'));
    expect(await store.conversations.find('later')).not.toBeNull();
  });

  test('refuses a file that is missing, corrupt, newer, or of another program or deployment', async () => {
    await made();
    const wrong = join(folder, 'wrong.db');
    const changed = (sql: string): void => {
      copyFileSync(file, wrong);
      const database = new DatabaseSync(wrong);
      database.exec(sql);
      database.close();
    };
    await refused(restore({ file: join(folder, 'nothing.db') }), 'unusable', 'There is no file');
    writeFileSync(wrong, 'no database, but long enough to be looked at '.repeat(100));
    await refused(restore({ file: wrong }), 'damaged', wrong);
    changed('PRAGMA application_id = 7');
    await refused(restore({ file: wrong }), 'damaged', 'is not a store of Skep');
    changed(`PRAGMA user_version = ${migrations.length + 1}`);
    await refused(restore({ file: wrong }), 'newer', `its schema is ${migrations.length + 1}`);
    copyFileSync(file, wrong);
    truncateSync(wrong, statSync(wrong).size / 2);
    await refused(restore({ file: wrong }), 'damaged');
    await refused(restore({ deploymentId: 'dep-2' }), 'other_deployment', 'dep-1', 'dep-2');
    expect(readdirSync(dataDir).toSorted()).toEqual(['skep.db', 'skep.lock']);
    expect(await (await open()).conversations.find('kept')).not.toBeNull();
  });

  test('accepts a database of an older version, which is upgraded when it is opened', async () => {
    const older = new DatabaseSync(file);
    migrate(older, migrations.slice(0, 4));
    older.exec("INSERT INTO specs VALUES ('node', 'v1', 100)");
    older.close();
    expect(await restore()).toMatchObject({ deploymentId: null, replaced: null });
    expect(await (await open()).specs.firstSeen('node', 'v1', 200)).toBe(100);
  });

  test('accepts a skep.db that was copied without its write-ahead log, also in its own place', async () => {
    const store = await open();
    copyFileSync(join(dataDir, 'skep.db'), file);
    await store.close();
    dataDir = join(folder, 'copy');
    await restore();
    await (await open()).close();
    copyFileSync(file, join(dataDir, 'skep.db'));
    await expect(open()).rejects.toMatchObject({ reason: 'log_missing', database: join(dataDir, 'skep.db') });
    expect((await restore({ file: join(dataDir, 'skep.db') })).replaced).not.toBeNull();
    await open();
  });
});

describe('A restored store', () => {
  test('has no pool members, since each may have got an owner after the backup', async () => {
    const store = await open();
    await store.sandboxes.insertPooled(somePooled('member'), 'v1', 5);
    await store.sandboxes.insert(someSandbox('owned', { status: 'RUNNING' }), unlimited);
    await backup();
    await store.close();
    await restore();
    const { sandboxes } = await open();
    expect([await sandboxes.pooled(), await sandboxes.find('member')]).toEqual([[], null]);
    expect(await sandboxes.find('owned')).not.toBeNull();
  });

  test('counts idle time from the restore', async () => {
    const store = await open();
    await store.sandboxes.insert(someSandbox('paused', { status: 'PAUSED', pauseKind: 'stop' }), unlimited);
    await store.sandboxes.insert(someSandbox('deleted', { deletedAt: someTime }), unlimited);
    await backup();
    await store.close();
    await restore();
    const { sandboxes } = await open();
    expect(await sandboxes.find('paused')).toMatchObject({ statusSince: now, lastActiveAt: now, createdAt: someTime, version: 1 });
    expect(await sandboxes.find('deleted')).toMatchObject({ deletedAt: someTime, statusSince: someTime });
  });

  test('keeps keys revoked that were revoked after the backup, if the replaced store can be read', async () => {
    const store = await open();
    const key = { name: 'ci', userId: 'u', access: 'full', repositories: null, createdAt: 1, expiresAt: null, revokedAt: null } as const;
    await store.apiKeys.insert({ ...key, id: 'k1', hash: 'h1' });
    await store.apiKeys.insert({ ...key, id: 'k2', hash: 'h2', name: 'other' });
    await backup();
    await store.apiKeys.revoke('k1', now);
    await store.close();
    expect(await restore()).toMatchObject({ keepsRevocations: true });
    const after = await open();
    expect((await after.apiKeys.list()).map(({ id, revokedAt }) => [id, revokedAt])).toEqual([['k1', now], ['k2', null]]);
    await after.close();
    writeFileSync(join(dataDir, 'skep.db'), 'damaged'.repeat(1000));
    expect(await restore()).toMatchObject({ keepsRevocations: false });
  });

  test('does not use the sequence number of an event again that was written after the backup', async () => {
    const store = await open();
    await store.events.append([someEvent('one')]);
    await backup();
    await store.events.append([someEvent('two'), someEvent('three')]);
    const last = await store.events.latest();
    await store.close();
    await restore();
    const { events } = await open();
    await events.append([someEvent('four')]);
    const { ownerId } = someEvent('four');
    expect((await events.read({ ownerId }, last, 10)).length).toBe(1);
    expect((await events.read({ ownerId }, 0, 10)).length).toBe(2);
  });
});

test('a store belongs to the deployment of its first server, and refuses another one', async () => {
  await (await open('dep-1')).close();
  await (await createSqliteStore({ dataDir, deploymentId: (kept) => kept ?? 'none' })).close();
  await refused(open('dep-2'), 'other_deployment', 'deployment.json', 'Nothing was changed');
  await (await open('dep-1')).close();
});
