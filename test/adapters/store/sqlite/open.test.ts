import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createSqliteStore, isStoreRefused, type RefusalReason } from '../../../../src/adapters/store/sqlite/index.ts';
import { migrations } from '../../../../src/adapters/store/sqlite/migrations.ts';
import { someConversation } from '../../../contracts/records.ts';
import { newFolder } from './harness.ts';
import { endChildren, startChild } from './processes.ts';

let folder: ReturnType<typeof newFolder>;
let dataDir: string;
let database: string;

beforeEach(() => {
  folder = newFolder();
  dataDir = join(folder.path, 'data');
  database = join(dataDir, 'skep.db');
});

afterEach(async () => {
  await endChildren();
  folder.remove();
});

describe('a data folder', () => {
  test('is made for its owner only, as are the files in it', async () => {
    dataDir = join(folder.path, 'not', 'there');
    const store = await createSqliteStore({ dataDir });
    await store.conversations.insert(someConversation('one'));
    expect(modeOf(dataDir)).toBe(0o700);
    expect(readdirSync(dataDir).toSorted()).toEqual(['skep.db', 'skep.db-open', 'skep.db-shm', 'skep.db-wal', 'skep.lock', 'skep.pid']);
    for (const file of readdirSync(dataDir)) expect([file, modeOf(join(dataDir, file))]).toEqual([file, 0o600]);
    await store.close();
    expect(readdirSync(dataDir).toSorted()).toEqual(['skep.db', 'skep.lock']);
  });

  test('keeps its mode if it exists, while a database that others may read becomes private', async () => {
    await make();
    chmodSync(dataDir, 0o755);
    chmodSync(database, 0o644);
    const store = await createSqliteStore({ dataDir });
    expect([modeOf(dataDir), modeOf(database)]).toEqual([0o755, 0o600]);
    await store.close();
  });

  test('may have any name', async () => {
    dataDir = join(folder.path, `a ?mode=ro#x %41 'ü"`);
    await make();
    const store = await createSqliteStore({ dataDir });
    expect(await store.conversations.find('kept')).not.toBeNull();
    await store.close();
  });

  test('that can\'t be made is refused', async () => {
    writeFileSync(dataDir, 'a file');
    await refused('unusable', dataDir);
    dataDir = join(dataDir, 'below');
    await refused('unusable', dataDir, 'a part of its path is not a folder');
  });

  test('that is not writable is refused', async () => {
    mkdirSync(dataDir);
    chmodSync(dataDir, 0o555);
    chmodSync(folder.path, 0o755);
    const child = startChild('open', dataDir, 'unprivileged');
    await child.ended();
    expect(child.lines).toEqual([expect.stringMatching(/^failed: The data folder .* can't be used: .*Make it writable/)]);
  });
});

describe('the lock', () => {
  test('keeps a second server of this process out, until the first closes', async () => {
    const store = await createSqliteStore({ dataDir });
    await refused('locked', dataDir, String(process.pid), 'Stop that one first');
    await refused('locked');
    await store.close();
    await make();
  });

  test('keeps a server of another process out, until the first is killed', async () => {
    const first = startChild('hold', dataDir);
    await first.said(1);
    const second = startChild('open', dataDir);
    await second.ended();
    expect(second.lines).toEqual([expect.stringContaining(`is open in another process (probably ${first.pid})`)]);
    await refused('locked');
    await first.kill();
    expect(existsSync(join(dataDir, 'skep.pid'))).toBe(true);
    const third = startChild('open', dataDir);
    await third.ended();
    expect(third.lines).toEqual(['open']);
  });

  test('lets a visitor in while a server has the folder open', async () => {
    const server = await createSqliteStore({ dataDir });
    const visitor = await createSqliteStore({ dataDir, exclusive: false });
    await visitor.conversations.insert(someConversation('from the visitor'));
    expect(await server.conversations.find('from the visitor')).not.toBeNull();
    await visitor.close();
    await refused('locked');
    await server.close();
  });

  test('is not taken by a visitor, also one that makes the folder', async () => {
    const visitor = await createSqliteStore({ dataDir, exclusive: false });
    const server = await createSqliteStore({ dataDir });
    await visitor.conversations.insert(someConversation('one'));
    expect(await server.conversations.find('one')).not.toBeNull();
    await visitor.close();
    await server.close();
  });
});

describe('the version', () => {
  test('is written with the first start, and no step is made again', async () => {
    await make();
    const before = fingerprints();
    await (await createSqliteStore({ dataDir })).close();
    await (await createSqliteStore({ dataDir, exclusive: false })).close();
    expect(fingerprints()).toEqual(before);
    expect(versionOf()).toBe(migrations.length);
  });

  test.each([true, false])('of a newer program is refused, and nothing is changed (exclusive: %j)', async (exclusive) => {
    await make();
    setVersion(migrations.length + 1);
    const before = fingerprints();
    await refusedWith({ exclusive }, 'newer', 'newer version', `schema is ${migrations.length + 1}`, 'Start that version again');
    expect(fingerprints()).toEqual(before);
  });

  test('of a newer program is refused also while its last writes are in the log only', async () => {
    await make();
    const server = startChild('hold', dataDir);
    await server.said(1);
    setVersion(migrations.length + 1);
    await server.kill();
    const before = fingerprints();
    expect(Object.keys(before)).toContain('skep.db-wal');
    await refused('newer');
    const { 'skep.db-shm': _ignored, 'skep.pid': _pid, ...after } = fingerprints();
    expect(before).toMatchObject(after);
  });

  test('of an older program is not changed by a visitor while a server has the folder open', async () => {
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

describe('a file that is not the database', () => {
  test.each([true, false])('is refused and kept: text (exclusive: %j)', async (exclusive) => {
    mkdirSync(dataDir);
    writeFileSync(database, 'This is not a database, but it is long enough to be looked at. '.repeat(100));
    const before = fingerprints();
    await refusedWith({ exclusive }, 'damaged', 'is damaged', 'Restore');
    expect(fingerprints()).toMatchObject(before);
  });

  test('is refused and kept: another program\'s', async () => {
    mkdirSync(dataDir);
    for (const sql of ['CREATE TABLE theirs (a)', 'PRAGMA user_version = 1', 'PRAGMA application_id = 7']) {
      const theirs = new DatabaseSync(database);
      theirs.exec(sql);
      theirs.close();
      await refused('damaged', 'is not a database of Skep');
    }
  });

  test('is refused: cut short', async () => {
    await make();
    truncateSync(database, Math.floor(statSync(database).size / 2));
    await refused('damaged', 'Restore');
  });

  test('is taken for a new one: empty', async () => {
    mkdirSync(dataDir);
    writeFileSync(database, '');
    await make();
  });
});

/** Makes the folder with one record in it, unless it is there. */
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

/** The database's version, and what else is to be done to it, as another program would. */
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

/** Of each file in the folder. Not to be taken while this process has it open: that would drop SQLite's locks. */
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
