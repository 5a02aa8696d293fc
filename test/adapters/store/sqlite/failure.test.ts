import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { newExecution } from '../../../../src/domain/execution.ts';
import { explained } from '../../../../src/domain/reason.ts';
import { createConversationStore } from '../../../../src/adapters/store/conversation-store.ts';
import { createEventLog } from '../../../../src/adapters/store/event-store.ts';
import { createSqliteStore } from '../../../../src/adapters/store/sqlite/index.ts';
import { unlimited } from '../../../../src/domain/admission-limits.ts';
import { nextVersion, someConversation, someEvent, someMessage, someSandbox, someTime } from '../../../contracts/records.ts';
import { openDb } from './harness.ts';
import { eachFolder, startChild } from './processes.ts';

let folder: string;
let database: string;

eachFolder((path) => {
  folder = path;
  database = join(path, 'skep.db');
});

describe('An open store', () => {
  test('fails with `disk_full` if the disk is full, and writes no part of the record', async () => {
    await (await createSqliteStore({ dataDir: folder })).close();
    const { sqlite, db } = openDb(database);
    sqlite.exec('PRAGMA max_page_count = 80');
    const conversations = createConversationStore(db, createEventLog(db));
    const text = 'x'.repeat(10_000);
    const failure = await (async () => {
      for (let n = 0; ; n += 1) {
        const one = someConversation(`c${n}`, { queue: [someMessage('m', text)] });
        await conversations.insert(one, { ownerId: 'ann', key: one.id, fingerprint: 'f' });
      }
    })().catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'store_unavailable', context: { reason: { code: 'disk_full' } } });

    const kept = (await conversations.scanUnsettled(null, 1000)).length;
    expect(kept).toBeGreaterThan(0);
    expect(await conversations.find(`c${kept}`)).toBeNull();
    sqlite.exec('PRAGMA max_page_count = 100000');
    const again = { ownerId: 'ann', key: `c${kept}`, fingerprint: 'other' };
    expect(await conversations.insert(someConversation('next'), again)).toEqual({ kind: 'inserted' });
    sqlite.close();
  });

  test('fails if the file system refuses a write, and keeps the earlier records', async () => {
    const child = startChild('fill', folder, '', 'ulimit -f 4000');
    await child.ended();
    const [line = '{}'] = child.lines;
    expect(JSON.parse(line)).toMatchObject({ error: { code: 'store_unavailable' }, kept: true, half: false });
    expect(line).not.toContain(folder);
    const store = await createSqliteStore({ dataDir: folder });
    expect(await store.conversations.find('c0')).not.toBeNull();
    await store.close();
  });

  test('fails with `locked` if another program locks the database longer than `busyTimeoutMs`', async () => {
    const store = await createSqliteStore({ dataDir: folder, busyTimeoutMs: 1 });
    const other = new DatabaseSync(database);
    other.exec('BEGIN IMMEDIATE');
    const reason = { code: 'locked' };
    const failure = { code: 'store_unavailable', context: { reason } };
    await expect(store.sandboxes.insert(someSandbox('one'), unlimited)).rejects.toMatchObject(failure);
    await expect(store.apiKeys.revoke('one', someTime)).rejects.toMatchObject(failure);
    expect(await store.sandboxes.find('one')).toBeNull();
    other.exec('COMMIT');
    expect(await store.sandboxes.insert(someSandbox('one'), unlimited)).toEqual({ kind: 'inserted' });
    other.close();
    await store.close();
  });

  test('waits with a write for the lock of another program, and can be read meanwhile', async () => {
    const store = await createSqliteStore({ dataDir: folder });
    const other = new DatabaseSync(database);
    other.exec('BEGIN IMMEDIATE');
    let written = false;
    const write = store.sandboxes.insert(someSandbox('one'), unlimited).then(() => (written = true));
    const others = Array.from({ length: 5 }, (_, n) => store.sandboxes.touch('one', n));
    expect(await store.sandboxes.find('one')).toBeNull();
    expect(await store.events.latest()).toBe(0);
    for (let turn = 0; turn < 50; turn += 1) await setTimeout(1);
    expect(written).toBe(false);
    other.exec('COMMIT');
    await Promise.all([write, ...others]);
    expect(await store.sandboxes.find('one')).not.toBeNull();
    other.close();
    await store.close();
  });

  test.each([0, 3, 20, 100, 400])('keeps no part of a transaction that close() interrupts (%i)', async (turns) => {
    const store = await createSqliteStore({ dataDir: folder });
    const write = async (n: number) => await store.conversations.insert(someConversation(`c${n}`), undefined, [someEvent('told')]);
    const writes = Promise.allSettled(Array.from({ length: 20 }, (_, n) => write(n)));
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    await store.close();
    const failed = (await writes).flatMap((write) => (write.status === 'rejected' ? [write.reason] : []));
    expect(failed.length).toBeGreaterThan(0);
    for (const error of failed) expect(error).toMatchObject({ code: 'store_unavailable' });
    const again = await createSqliteStore({ dataDir: folder });
    const kept = await again.conversations.scanUnsettled(null, 100);
    expect(kept).toHaveLength(20 - failed.length);
    expect(await again.events.read({ ownerId: 'ann' }, 0, 100)).toHaveLength(kept.length);
    await again.close();
  });

  test('writes no record if its event or its idempotency key can not be written, and notifies no subscriber', async () => {
    const store = await createSqliteStore({ dataDir: folder });
    const conversation = someConversation('one');
    await store.conversations.insert(conversation);
    const other = new DatabaseSync(database);
    other.exec(`CREATE TRIGGER broken BEFORE INSERT ON events WHEN NEW.reason LIKE '%bad%' BEGIN SELECT raise(FAIL, 'broken'); END`);
    other.exec(`CREATE TRIGGER no_claims BEFORE INSERT ON claims BEGIN SELECT raise(FAIL, 'broken'); END`);
    const claim = { ownerId: 'ann', key: 'k', fingerprint: 'f' };
    let woken = 0;
    store.events.subscribe(() => void (woken += 1));
    const both = [someEvent('good'), someEvent('bad', { reason: explained('bad') })];
    for (const write of [
      () => store.events.append(both),
      () => store.conversations.replace(nextVersion(conversation, { title: 'changed' }), both),
      () => store.conversations.insert(someConversation('two'), undefined, both),
      () => store.conversations.insert(someConversation('two'), claim, [someEvent('good')]),
      () => store.sandboxes.insert(someSandbox('one'), unlimited, undefined, both),
    ]) {
      await expect(write()).rejects.toMatchObject({ code: 'store_unavailable' });
    }
    expect(woken).toBe(0);
    expect(await store.events.read({ ownerId: 'ann' }, 0, 9)).toEqual([]);
    expect(await store.conversations.find('one')).toEqual(conversation);
    expect([await store.conversations.find('two'), await store.sandboxes.find('one')]).toEqual([null, null]);
    other.exec('DROP TRIGGER no_claims');
    expect(await store.conversations.insert(someConversation('two'), claim)).toEqual({ kind: 'inserted' });
    other.close();
    await store.close();
  });

  test.each([
    ['data', '{"messageId": 7}'],
    ['data', 'not json'],
    ['kind', 'rumour'],
    ['actor', 'nobody'],
  ])('fails with `damaged` if an event is corrupt (%s: %s)', async (column, value) => {
    const store = await createSqliteStore({ dataDir: folder });
    await store.events.append([someEvent('one')]);
    const other = new DatabaseSync(database);
    other.prepare(`UPDATE events SET ${column} = ?`).run(value);
    other.close();
    const failure = { code: 'store_unavailable', context: { reason: { code: 'damaged' } } };
    await expect(store.events.read({ ownerId: 'ann' }, 0, 9)).rejects.toMatchObject(failure);
    await store.close();
  });

  test('a damaged record is left out of scans, and reported', async () => {
    const damaged: string[] = [];
    const store = await createSqliteStore({ dataDir: folder, onDamaged: ({ kind, id }) => damaged.push(`${kind} ${id}`) });
    for (const id of ['a', 'b', 'c']) {
      await store.sandboxes.insert(someSandbox(id), unlimited);
      await store.conversations.insert(someConversation(id, { queue: [someMessage('m', 'text')] }));
      await store.executions.insert(newExecution({ id, sandboxId: id, command: [], stdin: false, tty: false, timeoutMs: null, now: 0 }), { executionsPerSandbox: null });
    }
    const other = new DatabaseSync(database);
    for (const table of ['sandboxes', 'conversations', 'executions']) other.exec(`UPDATE ${table} SET status_reason = 'not json' WHERE id < 'c'`);
    other.close();
    type Scan = (after: string | null, limit: number) => Promise<readonly { readonly id: string }[]>;
    const scans: Scan[] = [
      (...from) => store.sandboxes.scan(...from), (...from) => store.conversations.scanUnsettled(...from),
      (...from) => store.executions.scanUnsettled(...from),
    ];
    for (const scan of scans) {
      expect((await scan(null, 1)).map(({ id }) => id)).toEqual(['c']);
      expect((await scan(null, 9)).map(({ id }) => id)).toEqual(['c']);
      expect(await scan('c', 1)).toEqual([]);
    }
    expect([...new Set(damaged)]).toEqual(['sandbox a', 'sandbox b', 'conversation a', 'conversation b', 'execution a', 'execution b']);
    await store.close();
  });

  test.each([
    ['spec', 'not json'],
    ['spec', '{"id": "node"'],
    ['spec', 'null'],
    ['exposed_urls', '7'],
    ['status', 'ASLEEP'],
    ['pause_kind', 'nap'],
  ])('fails with `damaged` and its id if a record is corrupt (%s: %s)', async (column, value) => {
    const store = await createSqliteStore({ dataDir: folder });
    await store.sandboxes.insert(someSandbox('one'), unlimited);
    const other = new DatabaseSync(database);
    other.prepare(`UPDATE sandboxes SET ${column} = ?, version = 2`).run(value);
    other.close();
    const failure = { code: 'store_unavailable', context: { reason: { code: 'damaged', recordId: 'one' } } };
    await expect(store.sandboxes.find('one')).rejects.toMatchObject(failure);
    await expect(store.sandboxes.search('ann', {}, { after: null, limit: 9 })).rejects.toMatchObject(failure);
    await store.close();
  });
});
