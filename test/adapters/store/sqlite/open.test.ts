import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { createSqliteStore, isStoreRefused, type RefusalReason } from '../../../../src/adapters/store/sqlite/index.ts';
import { migrations } from '../../../../src/adapters/store/sqlite/migrations.ts';
import { someConversation } from '../../../contracts/records.ts';
import { eachFolder, startChild } from './processes.ts';

let folder: string;
let dataDir: string;
let database: string;

eachFolder((path) => {
  folder = path;
  dataDir = join(path, 'data');
  database = join(dataDir, 'skep.db');
});

describe('A data folder', () => {
  test('is created with access for its owner only, and so are its files', async () => {
    dataDir = join(folder, 'not', 'there');
    const store = await createSqliteStore({ dataDir });
    await store.conversations.insert(someConversation('one'));
    expect(modeOf(dataDir)).toBe(0o700);
    expect(readdirSync(dataDir).toSorted()).toEqual(['skep.db', 'skep.db-open', 'skep.db-shm', 'skep.db-wal', 'skep.lock']);
    for (const file of readdirSync(dataDir)) expect([file, modeOf(join(dataDir, file))]).toEqual([file, 0o600]);
    await store.close();
    expect(readdirSync(dataDir).toSorted()).toEqual(['skep.db', 'skep.lock']);
  });

  test('keeps its mode if it exists, but its database becomes private', async () => {
    await make();
    chmodSync(dataDir, 0o755);
    chmodSync(database, 0o644);
    const store = await createSqliteStore({ dataDir });
    expect([modeOf(dataDir), modeOf(database)]).toEqual([0o755, 0o600]);
    await store.close();
  });

  test('may have special characters in its name', async () => {
    dataDir = join(folder, `a ?mode=ro#x %41 'ü"`);
    await make();
    const store = await createSqliteStore({ dataDir });
    expect(await store.conversations.find('kept')).not.toBeNull();
    await store.close();
  });

  test('is refused as `unusable` if it can not be created', async () => {
    writeFileSync(dataDir, 'a file');
    await refused('unusable', dataDir);
    dataDir = join(dataDir, 'below');
    await refused('unusable', dataDir, 'A part of its path is not a folder. Choose another data folder');
  });

  test('is not blamed for an error of its deployment file', async () => {
    const damaged = new Error('The file deployment.json is damaged. Restore it from a copy.');
    await expect(createSqliteStore({ dataDir, deploymentId() { throw damaged; } })).rejects.toBe(damaged);
  });

  test('is refused if it is not writable', async () => {
    mkdirSync(dataDir);
    chmodSync(dataDir, 0o555);
    chmodSync(folder, 0o755);
    const child = startChild('open', dataDir, 'unprivileged');
    await child.ended();
    expect(child.lines).toEqual([expect.stringMatching(/^failed: The data folder .* can't be used: .*Make it writable/)]);
  });
});

describe('The lock of a data folder', () => {
  test('refuses a second server in this process until the first one closes', async () => {
    const store = await createSqliteStore({ dataDir });
    await refused('locked', `${dataDir} is open in this process already. Close it first`);
    await refused('locked');
    await store.close();
    await make();
  });

  test('refuses a server in another process until the first one is killed', async () => {
    const first = startChild('hold', dataDir);
    await first.said(1);
    const second = startChild('open', dataDir);
    await second.ended();
    expect(second.lines).toEqual([expect.stringContaining('is open in another process. Stop that one')]);
    await refused('locked');
    await first.kill();
    const third = startChild('open', dataDir);
    await third.ended();
    expect(third.lines).toEqual(['open']);
  });

  test('lets a visitor open the folder while a server has it open', async () => {
    const server = await createSqliteStore({ dataDir });
    const visitor = await createSqliteStore({ dataDir, exclusive: false });
    await visitor.conversations.insert(someConversation('from the visitor'));
    expect(await server.conversations.find('from the visitor')).not.toBeNull();
    await visitor.close();
    await refused('locked');
    await server.close();
  });

  test('is not taken by a visitor, even if the visitor creates the folder', async () => {
    const visitor = await createSqliteStore({ dataDir, exclusive: false });
    const server = await createSqliteStore({ dataDir });
    await visitor.conversations.insert(someConversation('one'));
    expect(await server.conversations.find('one')).not.toBeNull();
    await visitor.close();
    await server.close();
  });
});

describe('The schema version', () => {
  test('is written at the first start, and a later start changes nothing', async () => {
    await make();
    const before = fingerprints();
    await (await createSqliteStore({ dataDir })).close();
    await (await createSqliteStore({ dataDir, exclusive: false })).close();
    expect(fingerprints()).toEqual(before);
    expect(versionOf()).toBe(migrations.length);
  });

  test.each([true, false])('is refused if it is newer, and nothing is changed (exclusive: %j)', async (exclusive) => {
    await make();
    setVersion(migrations.length + 1);
    const before = fingerprints();
    await refusedWith({ exclusive }, 'newer', 'newer version', `schema is ${migrations.length + 1}`, 'Start that version again');
    expect(fingerprints()).toEqual(before);
  });

  test('is refused if it is newer, also if only the write-ahead log has it', async () => {
    await make();
    const server = startChild('hold', dataDir);
    await server.said(1);
    setVersion(migrations.length + 1);
    await server.kill();
    const before = fingerprints();
    expect(Object.keys(before)).toContain('skep.db-wal');
    await refused('newer');
    const { 'skep.db-shm': _ignored, ...after } = fingerprints();
    expect(before).toMatchObject(after);
  });

  test('is not upgraded by a visitor while a server has the folder open', async () => {
    const server = startChild('hold', dataDir);
    await server.said(1);
    dropTables();
    setVersion(0, 'PRAGMA application_id = 0;');
    await refusedWith({ exclusive: false }, 'migration_due', 'Stop that server');
    expect(versionOf()).toBe(0);
    await server.kill();
    await (await createSqliteStore({ dataDir, exclusive: false })).close();
    expect(versionOf()).toBe(migrations.length);
  });
});

describe('A database file', () => {
  test.each([true, false])('is refused as `damaged` and kept if it is text (exclusive: %j)', async (exclusive) => {
    mkdirSync(dataDir);
    writeFileSync(database, 'This is not a database, but it is long enough to be looked at. '.repeat(100));
    const before = fingerprints();
    await refusedWith({ exclusive }, 'damaged', 'is damaged', 'Restore');
    expect(fingerprints()).toMatchObject(before);
  });

  test('is refused as `damaged` if it belongs to another program', async () => {
    mkdirSync(dataDir);
    for (const sql of ['CREATE TABLE theirs (a)', 'PRAGMA user_version = 1', 'PRAGMA application_id = 7']) {
      const theirs = new DatabaseSync(database);
      theirs.exec(sql);
      theirs.close();
      await refused('damaged', 'is not a database of Skep');
    }
  });

  test('is refused as `damaged` if it is truncated', async () => {
    await make();
    truncateSync(database, Math.floor(statSync(database).size / 2));
    await refused('damaged', 'Restore');
  });

  test('becomes a new database if it is empty', async () => {
    mkdirSync(dataDir);
    writeFileSync(database, '');
    await make();
  });
});

/** Opens the store, and creates it if it does not exist. Inserts one record. */
async function make(): Promise<void> {
  const store = await createSqliteStore({ dataDir });
  await store.conversations.insert(someConversation('kept'));
  await store.close();
}

async function refused(reason: RefusalReason, ...parts: string[]): Promise<void> {
  await refusedWith({}, reason, ...parts);
}

async function refusedWith(options: { exclusive?: boolean }, reason: RefusalReason, ...parts: string[]): Promise<void> {
  const error = await createSqliteStore({ dataDir, ...options }).catch((error: unknown) => error);
  if (!isStoreRefused(error)) throw new Error('it was not refused', { cause: error });
  expect(error.reason).toBe(reason);
  for (const part of parts) expect(error.message).toContain(part);
}

/** Sets the version of the database and runs the SQL, as another program would. */
function setVersion(version: number, sql = ''): void {
  const other = new DatabaseSync(database);
  other.exec(`${sql} PRAGMA user_version = ${version}`);
  other.close();
}

function dropTables(): void {
  const other = new DatabaseSync(database);
  const tables = other.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`).all();
  for (const { name } of tables) other.exec(`DROP TABLE ${String(name)}`);
  other.close();
}

function versionOf(): number {
  const other = new DatabaseSync(database, { readOnly: true });
  const version = Number(other.prepare('PRAGMA user_version').get()?.['user_version']);
  other.close();
  return version;
}

/** Returns a fingerprint of each file. Do not call it while this process has the folder open: it would drop SQLite's locks. */
function fingerprints(): Record<string, string> {
  return Object.fromEntries(
    readdirSync(dataDir).map((file) => {
      const path = join(dataDir, file);
      return [file, `${modeOf(path)} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`];
    }),
  );
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}
