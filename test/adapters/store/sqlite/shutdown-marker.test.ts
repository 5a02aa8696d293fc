import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { createSqliteStore, isStoreRefused, inspectSqlite, type StoreWarning } from '../../../../src/adapters/store/sqlite/index.ts';
import { someConversation } from '../../../contracts/records.ts';
import { dataFolderAt } from '../../../../src/adapters/store/sqlite/data-folder.ts';
import { checkLog } from '../../../../src/adapters/store/sqlite/shutdown-marker.ts';
import { eachFolder, startChild } from './processes.ts';

let dataDir: string;
let copyDir: string;
let warnings: StoreWarning[];
const warn = (warning: StoreWarning): void => void warnings.push(warning);

eachFolder((path) => {
  dataDir = join(path, 'data');
  copyDir = join(path, 'copy');
  mkdirSync(copyDir);
  warnings = [];
});

/** Opens the folder and closes it again. Returns why that is refused, or whether the record is there. */
async function open(path: string, exclusive = true): Promise<unknown> {
  try {
    const store = await createSqliteStore({ dataDir: path, exclusive, warn });
    const found = await store.conversations.find('kept');
    await store.close();
    return found === null ? 'empty' : 'kept';
  } catch (error) {
    if (!isStoreRefused(error)) throw error;
    return error.reason;
  }
}

const copy = (...suffixes: readonly string[]): void => {
  for (const suffix of suffixes) copyFileSync(join(dataDir, `skep.db${suffix}`), join(copyDir, `skep.db${suffix}`));
};

/** Starts a server that writes records, and kills it. */
async function crashed(): Promise<void> {
  const child = startChild('write', dataDir, 'w');
  await child.said(1);
  await child.kill();
}

test.each(['', 'error'])('a store that its process leaves open at its end counts as closed (%j)', async (how) => {
  await startChild('leave', dataDir, how).ended();
  expect([await open(dataDir), warnings]).toEqual(['kept', []]);
});

describe('skep.db of a running server', () => {
  test('is refused and not changed if it was copied without its write-ahead log', async () => {
    const store = await createSqliteStore({ dataDir });
    await store.conversations.insert(someConversation('kept'));
    copy('');
    for (const exclusive of [true, false, true]) {
      expect(await open(copyDir, exclusive)).toBe('log_missing');
      expect(readdirSync(copyDir).filter((name) => name !== 'skep.lock')).toEqual(['skep.db']);
    }
    await expect(inspectSqlite(copyDir)).rejects.toMatchObject({ reason: 'log_missing' });
    await store.close();
    expect(await open(dataDir)).toBe('kept');
    expect(warnings).toEqual([]);
  });

  test.each([[['', '-wal']], [['', '-wal', '-shm', '-open']]])('is opened if it was copied with its log: %j', async (suffixes) => {
    const store = await createSqliteStore({ dataDir });
    await store.conversations.insert(someConversation('kept'));
    copy(...suffixes);
    await store.close();
    expect([await open(copyDir), await open(copyDir), warnings]).toEqual(['kept', 'kept', []]);
  });

  test('is refused beside the write-ahead log of another database', async () => {
    await createSqliteStore({ dataDir }).then((store) => store.close());
    copy('');
    await crashed();
    copyFileSync(join(copyDir, 'skep.db'), join(dataDir, 'skep.db'));
    expect(await open(dataDir)).toBe('log_of_another');
    rmSync(join(dataDir, 'skep.db-wal'));
    rmSync(join(dataDir, 'skep.db-shm'), { force: true });
    expect(await open(dataDir)).toBe('empty');
    expect(warnings).toEqual([]);
  });
});

describe('A store after a crash', () => {
  test('is opened, also after three crashes', async () => {
    for (let times = 0; times < 3; times += 1) {
      await crashed();
      expect(existsSync(join(dataDir, 'skep.db-open'))).toBe(true);
    }
    expect(await open(dataDir)).toBe('empty');
    expect(existsSync(join(dataDir, 'skep.db-open'))).toBe(false);
    expect(warnings).toEqual([]);
  });

  test('reports once that its write-ahead log is missing', async () => {
    await crashed();
    rmSync(join(dataDir, 'skep.db-wal'));
    await open(dataDir);
    await open(dataDir);
    expect(warnings).toEqual([{ code: 'log_lost', dataDir }]);
  });

  test('is reported as lost if only the file of the deployment is left', async () => {
    await crashed();
    writeFileSync(join(dataDir, 'deployment.json'), '{}');
    for (const name of ['skep.db', 'skep.db-wal']) rmSync(join(dataDir, name));
    await open(dataDir);
    expect(warnings).toEqual([{ code: 'store_lost', dataDir }]);
  });

  test('is marked as closed after a visitor has merged the log', async () => {
    await crashed();
    expect(await open(dataDir, false)).toBe('empty');
    expect(existsSync(join(dataDir, 'skep.db-wal'))).toBe(false);
    await open(dataDir);
    expect(warnings).toEqual([]);
  });

  test('is opened with a warning if another program has merged the log', async () => {
    await crashed();
    const other = new DatabaseSync(join(dataDir, 'skep.db'));
    other.prepare('SELECT count(*) FROM sandboxes').get();
    other.close();
    expect(await open(dataDir)).toBe('empty');
    expect(warnings).toHaveLength(1);
  });
});

test('a visitor that closes before the server does not remove the marker', async () => {
  const store = await createSqliteStore({ dataDir });
  await open(dataDir, false);
  copy('');
  expect(await open(copyDir)).toBe('log_missing');
  await store.close();
});

test('a visitor that closes after the server leaves a store that is marked as closed', async () => {
  const store = await createSqliteStore({ dataDir });
  const visitor = await createSqliteStore({ dataDir, exclusive: false });
  await store.conversations.insert(someConversation('kept'));
  await store.close();
  await visitor.close();
  expect(existsSync(join(dataDir, 'skep.db-wal'))).toBe(false);
  copy('');
  expect([await open(copyDir), warnings]).toEqual(['kept', []]);
});

test.each(['closed', 'left by a start that crashed at once'])('a store that is %s and opened while a reader holds it is opened after a crash', async (how) => {
  const before = await createSqliteStore({ dataDir });
  await before.conversations.insert(someConversation('kept'));
  await before.close();
  using reader = new DatabaseSync(join(dataDir, 'skep.db'));
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM sandboxes').get();
  if (how !== 'closed') {
    using starting = new DatabaseSync(join(dataDir, 'skep.db'));
    starting.prepare('UPDATE deployment SET opening = ?').run('1'.repeat(36));
  }
  for (let times = 0; times < 2; times += 1) {
    const child = startChild('write', dataDir, `w${times}`);
    await child.said(1);
    await child.kill();
  }
  copy('', '-wal', ...(existsSync(join(dataDir, 'skep.db-open')) ? ['-open'] : []));
  expect(await open(copyDir, false)).toBe('kept');
  const store = await createSqliteStore({ dataDir: copyDir, warn });
  for (const id of ['w0-0', 'w1-0']) expect(await store.sandboxes.find(id)).toMatchObject({ id });
  await store.close();
  expect([await open(copyDir), warnings]).toEqual(['kept', []]);
});

describe('The check of the write-ahead log', () => {
  const [closed, own, foreign] = ['-', '1', '2'].map((digit) => digit.repeat(36));

  test.each([
    { inFile: closed, marker: null, log: false, expected: 'accepted' },
    { inFile: closed, marker: null, log: true, expected: 'accepted' },
    { inFile: closed, marker: foreign, log: false, expected: 'accepted' },
    { inFile: closed, marker: foreign, log: true, expected: 'log_of_another' },
    { inFile: own, marker: null, log: false, expected: 'log_missing' },
    { inFile: own, marker: null, log: true, expected: 'accepted' },
    { inFile: own, marker: own, log: false, expected: 'log_lost' },
    { inFile: own, marker: own, log: true, expected: 'accepted' },
    { inFile: own, marker: foreign, log: false, expected: 'log_missing' },
    { inFile: own, marker: foreign, log: true, expected: 'log_of_another' },
    { inFile: null, marker: null, log: false, expected: 'accepted' },
    { inFile: null, marker: null, log: true, expected: 'accepted' },
    { inFile: null, marker: foreign, log: false, expected: 'accepted' },
    { inFile: null, marker: foreign, log: true, expected: 'accepted' },
  ])('with $inFile in skep.db, $marker in the marker and log: $log is $expected', ({ inFile, marker, log, expected }) => {
    const folder = dataFolderAt(copyDir);
    const database = new DatabaseSync(folder.database);
    database.exec('CREATE TABLE deployment (opening TEXT)');
    database.prepare('INSERT INTO deployment VALUES (?)').run(inFile ?? null);
    database.close();
    if (typeof marker === 'string') writeFileSync(folder.marker, `${marker}\n`);
    if (log) writeFileSync(`${folder.database}-wal`, 'x');
    const found = (() => {
      try {
        checkLog(folder, warn);
        return warnings[0]?.code ?? 'accepted';
      } catch (error) {
        return isStoreRefused(error) ? error.reason : error;
      }
    })();
    expect(found).toBe(expected);
  });
});
