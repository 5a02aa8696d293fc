import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openConnection } from '../../../src/adapters/sqlite/connection.ts';
import { createConversations } from '../../../src/adapters/sqlite/conversations.ts';
import { createSqliteStore } from '../../../src/adapters/sqlite/index.ts';
import { someConversation, someSandbox, someTime } from '../../contracts/records.ts';
import { newFolder } from './harness.ts';
import { endChildren, startChild } from './processes.ts';

let folder: ReturnType<typeof newFolder>;
let database: string;
const unlimited = { runningPerOwner: null, running: null };

beforeEach(() => {
  folder = newFolder();
  database = join(folder.path, 'skep.db');
});

afterEach(async () => {
  await endChildren();
  folder.remove();
});

describe('at run time', () => {
  test('a full disk is a failure in words, and leaves nothing half done', async () => {
    await (await createSqliteStore({ dataDir: folder.path })).close();
    const connection = openConnection(database, 0);
    connection.database.exec('PRAGMA max_page_count = 60');
    const conversations = createConversations(connection);
    const text = 'x'.repeat(10_000);
    const failure = await (async () => {
      for (let n = 0; ; n += 1) {
        const one = someConversation(`c${n}`, { initialMessage: { content: [{ type: 'text', text }] } });
        await conversations.insert(one, { ownerId: 'ann', key: one.id, fingerprint: 'f' });
      }
    })().catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'store_unavailable', context: { reason: 'the disk is full' } });

    const kept = (await conversations.scanUnsettled(null, 1000)).length;
    expect(kept).toBeGreaterThan(0);
    expect(await conversations.find(`c${kept}`)).toBeNull();
    connection.database.exec('PRAGMA max_page_count = 100000');
    const again = { ownerId: 'ann', key: `c${kept}`, fingerprint: 'other' };
    expect(await conversations.insert(someConversation('next'), again)).toEqual({ kind: 'inserted' });
    connection.close();
  });

  test('a transaction that breaks off leaves nothing behind, and the next one works', async () => {
    await (await createSqliteStore({ dataDir: folder.path })).close();
    const connection = openConnection(database, 0);
    const conversations = createConversations(connection);
    const claim = { ownerId: 'ann', key: 'k', fingerprint: 'f' };
    // The second statement, which keeps the claim, is the one that fails.
    connection.database.exec(`CREATE TRIGGER broken BEFORE INSERT ON claims BEGIN SELECT raise(FAIL, 'broken'); END`);
    await expect(conversations.insert(someConversation('one'), claim)).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(connection.database.isTransaction).toBe(false);
    expect(await conversations.find('one')).toBeNull();
    connection.database.exec('DROP TRIGGER broken');
    expect(await conversations.insert(someConversation('one'), claim)).toEqual({ kind: 'inserted' });
    connection.close();
  });

  test('a write that the file system refuses is a failure, and what was written is kept', async () => {
    const child = startChild('fill', folder.path, '', 'ulimit -f 4000');
    await child.ended();
    const [line = '{}'] = child.lines;
    expect(JSON.parse(line)).toMatchObject({ error: { code: 'store_unavailable' }, kept: true, half: false });
    expect(line).not.toContain(folder.path);
    const store = await createSqliteStore({ dataDir: folder.path });
    expect(await store.conversations.find('c0')).not.toBeNull();
    await store.close();
  });

  test('a database that another program holds is a failure once the wait is over', async () => {
    const store = await createSqliteStore({ dataDir: folder.path, busyTimeoutMs: 1 });
    const other = new DatabaseSync(database);
    other.exec('BEGIN IMMEDIATE');
    const reason = 'the database is locked by another program';
    const failure = { code: 'store_unavailable', context: { reason } };
    await expect(store.sandboxes.insert(someSandbox('one'), unlimited)).rejects.toMatchObject(failure);
    await expect(store.apiKeys.revoke('one', someTime)).rejects.toMatchObject(failure);
    expect(await store.sandboxes.find('one')).toBeNull();
    other.exec('COMMIT');
    expect(await store.sandboxes.insert(someSandbox('one'), unlimited)).toEqual({ kind: 'inserted' });
    other.close();
    await store.close();
  });

  test.each([
    ['spec', 'not json'],
    ['spec', '{"id": "node"}'],
    ['spec', 'null'],
    ['exposed_urls', '{}'],
    ['status', 'ASLEEP'],
    ['pause_kind', 'nap'],
  ])('a damaged record (%s: %s) is a failure, not an answer', async (column, value) => {
    const store = await createSqliteStore({ dataDir: folder.path });
    await store.sandboxes.insert(someSandbox('one'), unlimited);
    const other = new DatabaseSync(database);
    other.prepare(`UPDATE sandboxes SET ${column} = ?, generation = 2`).run(value);
    other.close();
    const failure = { code: 'store_unavailable', context: { reason: expect.stringContaining('damaged') } };
    await expect(store.sandboxes.find('one')).rejects.toMatchObject(failure);
    await expect(store.sandboxes.search('ann', {}, { after: null, limit: 9 })).rejects.toMatchObject(failure);
    await store.close();
  });
});
