import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createListingCache } from '../../../../src/adapters/store/listing-cache.ts';
import { createSqliteStore, type StoreWarning } from '../../../../src/adapters/store/sqlite/index.ts';
import { migrate } from '../../../../src/adapters/store/sqlite/migrate.ts';
import { migrations } from '../../../../src/adapters/store/sqlite/migrations.ts';
import { unlimited } from '../../../../src/domain/admission-limits.ts';
import { defaultIsolation, defaultResources } from '../../../../src/domain/sandbox-spec.ts';
import type { Store } from '../../../../src/ports/store.ts';
import { nextVersion, someEvent } from '../../../contracts/records.ts';
import { newFolder, openDb } from './harness.ts';

let folder: ReturnType<typeof newFolder>;
let store: Store | null;

beforeEach(() => {
  folder = newFolder();
  store = null;
});

afterEach(async () => {
  await store?.close();
  folder.remove();
});

/** A spec from the time before specs had agents, pools and isolation. */
const oldSpec = {
  id: 'node',
  description: null,
  image: 'node:26',
  command: ['sleep', 'infinity'],
  workingDir: '/workspace',
  initialEnv: { CI: '1' },
  sessionKeyEnv: 'SESSION_API_KEY',
  ports: [{ name: 'WEB', port: 8000 }],
  ready: { probe: { kind: 'tcp', port: 8000 }, withinMs: 1000 },
  resources: { cpus: null, memoryBytes: 5, pids: null },
  rest: { freezeAfterMs: 7, stopAfterMs: null, deleteAfterMs: null },
};

/** Writes a database with the schema of the version, and the rows. */
function writeVersion(version: number, rows: (database: DatabaseSync) => void): void {
  const database = new DatabaseSync(join(folder.path, 'skep.db'));
  migrate(database, migrations.slice(0, version));
  rows(database);
  database.close();
}

function oldSandbox(database: DatabaseSync, id: string, status: string, running: number): void {
  const insert = database.prepare(`
    INSERT INTO sandboxes (id, owner_id, spec_id, status, status_detail, status_since, pause_kind, session_api_key, generation,
      created_at, updated_at, last_active_at, deleted_at, removed_at, running, exposed_urls, spec)
    VALUES (?, 'ann', 'node', ?, 'why', 11, NULL, 'key', 3, 10, 12, 13, NULL, NULL, ?, '[]', ?)`);
  insert.run(id, status, running, JSON.stringify(oldSpec));
}

function oldConversation(
  database: DatabaseSync,
  id: string,
  status: string,
  message: string | null,
  deletedAt: number | null = null,
): void {
  const insert = database.prepare(`
    INSERT INTO conversations (id, owner_id, title, title_folded, sandbox_id, sandbox_spec_id, starts_sandbox, selected_repository,
      selected_branch, git_provider, start_status, execution_status, status_detail, generation, created_at, updated_at, deleted_at,
      removed_at, unsettled, initial_message)
    VALUES (?, 'ann', 'Shop', 'SHOP', 'running', 'node', 1, 'acme/shop', NULL, 'local', ?, NULL, NULL, 2, 20, 21, ?, NULL, ?, ?)`);
  insert.run(id, status, deletedAt, Number(deletedAt !== null || (status !== 'READY' && status !== 'ERROR')), message);
}

test('a database of version 1 gets the tables that it lacks, and keeps its records', async () => {
  writeVersion(1, (database) =>
    database.exec(`INSERT INTO specs VALUES ('node', 'v1', 100); INSERT INTO api_keys VALUES ('k', 'ci', 'u', 'full', 'h', 1, NULL, NULL)`),
  );
  const warnings: StoreWarning[] = [];
  const open = () => createSqliteStore({ dataDir: folder.path, warn: (warning) => void warnings.push(warning) });
  store = await open();
  expect(warnings).toEqual([{ code: 'upgrading', dataDir: folder.path }]);
  await store.close();
  store = await open();
  expect(warnings).toHaveLength(1);
  expect(await store.specs.firstSeen('node', 'v1', 200)).toBe(100);
  expect((await store.apiKeys.list()).map(({ name }) => name)).toEqual(['ci']);
  expect(await store.listingCache.get('scope', 'key')).toBeNull();
  await store.listingCache.put('scope', 'key', 'value');
  expect(await store.listingCache.get('scope', 'key')).toBe('value');
});

describe('A database of version 2, before agents and pools', () => {
  test('keeps its sandboxes, each as its own instance and with default values in its spec', async () => {
    writeVersion(2, (database) => {
      oldSandbox(database, 'running', 'RUNNING', 1);
      oldSandbox(database, 'starting', 'STARTING', 1);
      oldSandbox(database, 'paused', 'PAUSED', 0);
    });
    store = await createSqliteStore({ dataDir: folder.path });
    const { sandboxes } = store;
    expect(await sandboxes.findByInstance('running')).toEqual({
      id: 'running',
      instanceId: 'running',
      ownerId: 'ann',
      spec: {
        ...oldSpec,
        resources: { ...oldSpec.resources, openFiles: defaultResources.openFiles, logBytes: defaultResources.logBytes, diskBytes: null },
        isolation: defaultIsolation,
        runtimeOptions: {}, secrets: [], allowedSecrets: [], allowPlainSecrets: false, wakeOnAccess: 'none',
        labels: {},
        rest: { ...oldSpec.rest, maxLifeMs: null },
        pool: { size: 0 },
        agent: null,
      },
      metadata: {},
      status: 'RUNNING',
      statusReason: { code: 'noted', text: 'why' },
      statusSince: 11,
      startingSince: null,
      pauseKind: null,
      pausedBy: null,
      refused: null,
      sessionApiKey: 'key',
      exposedUrls: [],
      version: 3,
      createdAt: 10,
      updatedAt: 12,
      lastActiveAt: 13,
      deletedAt: null,
      removedAt: null,
    });
    expect(await sandboxes.pooled()).toEqual([]);
    expect((await sandboxes.longestIdle('ann', 9)).map(({ id }) => id)).toEqual(['running']);
    const starting = await sandboxes.find('starting');
    if (starting === null) throw new Error('it is gone');
    expect(await sandboxes.admit(nextVersion(starting), { ...unlimited, running: 2, existing: 3 })).toEqual({ kind: 'replaced' });
    const full = { kind: 'limit', reached: { limit: 'existing', max: 3 } };
    expect(await sandboxes.insert({ ...starting, id: 'new' }, { ...unlimited, existing: 3 })).toEqual(full);
  });

  test('keeps its conversations, and queues each first message, since it was never sent', async () => {
    const text = `it's "quoted",\n\u0000 and \u{1f600}`;
    const message = { content: [{ type: 'text', text }] };
    const statuses = ['WORKING', 'WAITING_FOR_SANDBOX', 'READY', 'ERROR'];
    writeVersion(2, (database) => {
      for (const status of statuses) {
        oldConversation(database, status, status, JSON.stringify(message));
        oldConversation(database, `silent-${status}`, status, null);
      }
      oldConversation(database, 'deleted', 'READY', JSON.stringify(message), 22);
      database.exec(`UPDATE conversations SET starts_sandbox = 0 WHERE id = 'deleted'`);
      oldConversation(database, 'damaged', 'READY', '{"content": [');
    });
    store = await createSqliteStore({ dataDir: folder.path });
    const { conversations } = store;
    for (const status of statuses) {
      const expected = {
        id: status,
        ownerId: 'ann',
        title: 'Shop',
        sandboxId: 'running',
        sandboxSpecId: 'node',
        startsSandbox: true, endsSandbox: true,
        sandboxParameters: {},
        selectedRepository: 'acme/shop',
        selectedBranch: null,
        gitProvider: 'local', repositoryPath: 'acme/shop', startPoint: null, possibleTips: {}, publications: {}, pullRequests: {},
        queue: [{ messageId: `message-of-${status}`, message, sandboxVersion: 0 }],
        turn: null,
        permission: null,
        permissionPolicy: 'ask',
        agentSessionId: null,
        microagents: null,
        startStatus: status,
        executionStatus: null,
        statusReason: null,
        version: 2,
        createdAt: 20,
        updatedAt: 21,
        archivedAt: null,
        releasedAt: null,
        deletedAt: null,
        removedAt: null,
      };
      expect(await conversations.find(status)).toEqual(expected);
      expect(await conversations.find(`silent-${status}`)).toEqual({ ...expected, id: `silent-${status}`, queue: [] });
    }
    const joined = { startsSandbox: false, endsSandbox: true, queue: [expect.anything()] };
    expect(await conversations.find('deleted')).toMatchObject(joined);
    await expect(conversations.find('damaged')).rejects.toMatchObject({ code: 'store_unavailable' });
    const unsettled = (await conversations.scanUnsettled(null, 99)).map(({ id }) => id);
    expect(unsettled).toEqual(['WAITING_FOR_SANDBOX', 'WORKING', 'deleted', 'silent-WAITING_FOR_SANDBOX', 'silent-WORKING']);
  });

  test('accepts new records and events', async () => {
    writeVersion(2, (database) => oldConversation(database, 'one', 'READY', null));
    store = await createSqliteStore({ dataDir: folder.path });
    const one = await store.conversations.find('one');
    if (one === null) throw new Error('it is gone');
    const next = nextVersion(one, { executionStatus: 'idle', permissionPolicy: 'allow' });
    expect(await store.conversations.replace(next, [someEvent('hello')])).toEqual({ kind: 'replaced' });
    expect(await store.conversations.find('one')).toEqual(next);
    expect(await store.events.latest()).toBe(1);
  });
});

describe('A database of version 3 to 5', () => {
  const insertSandbox = `
    INSERT INTO sandboxes (id, instance_id, owner_id, spec_id, status, status_since, turn_at, session_api_key, generation, created_at,
      updated_at, last_active_at, running, exposed_urls, spec)
    VALUES ('starting', 'starting', 'ann', 'node', 'STARTING', 11, 9, 'key', 7, 10, 12, 13, 1, '[]', '${JSON.stringify(oldSpec)}')`;

  test('keeps versions, start slots and cached listings under the new column names', async () => {
    writeVersion(3, (database) => {
      database.exec(insertSandbox);
      database.exec(`INSERT INTO knowledge (scope, key, bytes, used_at, value) VALUES ('s', 'k', 3, 1, 'v')`);
      database.exec('UPDATE knowledge_size SET bytes = 3');
    });
    store = await createSqliteStore({ dataDir: folder.path });
    const starting = await store.sandboxes.find('starting');
    expect(starting).toMatchObject({ version: 7, startingSince: 9 });
    if (starting === null) throw new Error('it is gone');
    expect(await store.sandboxes.replace(starting)).toEqual({ kind: 'stale' });
    expect(await store.sandboxes.replace(nextVersion(starting, { status: 'RUNNING' }))).toEqual({ kind: 'replaced' });
    expect(await store.listingCache.get('s', 'k')).toBe('v');
    const { db } = openDb(join(folder.path, 'skep.db'));
    await createListingCache(db, { maxBytes: 5, now: Date.now }).put('s', 'new', 'v');
    await db.destroy();
    expect([await store.listingCache.get('s', 'k'), await store.listingCache.get('s', 'new')]).toEqual([null, 'v']);
  });

  test('keeps the texts of reasons under the code `noted`', async () => {
    writeVersion(4, (database) => {
      database.exec(insertSandbox.replace('turn_at', 'starting_since').replace('generation', 'version'));
      database.exec(`UPDATE sandboxes SET status_detail = 'waiting for its turn'`);
      database.exec(`INSERT INTO events (kind, at, owner_id, actor, reason, data) VALUES ('plan', 1, 'ann', 'agent', 'it said "so"', '{"entries":[]}')`);
      database.exec(`INSERT INTO events (kind, at, owner_id, actor, data) VALUES ('plan', 1, 'ann', 'agent', '{"entries":[]}')`);
    });
    store = await createSqliteStore({ dataDir: folder.path });
    expect(await store.sandboxes.find('starting')).toMatchObject({ statusReason: { code: 'noted', text: 'waiting for its turn' } });
    const events = await store.events.read({ ownerId: 'ann' }, 0, 10);
    expect(events.map(({ reason, userId }) => [reason, userId])).toEqual([[{ code: 'noted', text: 'it said "so"' }, null], [null, null]]);
  });

  test('keeps who paused a sandbox, which only the events recorded', async () => {
    writeVersion(5, (database) => {
      const columns = insertSandbox.replace('turn_at', 'starting_since').replace('generation', 'version').replace(`'STARTING'`, `'PAUSED'`);
      database.exec(columns);
      const event = database.prepare(`INSERT INTO events (kind, at, owner_id, sandbox_id, actor, reason, data) VALUES ('sandbox_moved', 1, 'ann', 'starting', ?, ?, ?)`);
      event.run('skep', null, '{"to":"PAUSING"}');
      event.run('user', '{"code":"paused_by_owner"}', '{"to":"PAUSING"}');
      event.run('skep', null, '{"to":"PAUSED"}');
    });
    store = await createSqliteStore({ dataDir: folder.path });
    expect((await store.sandboxes.find('starting'))?.pausedBy).toEqual({ actor: 'user', reason: { code: 'paused_by_owner' }, version: 7 });
  });
});
