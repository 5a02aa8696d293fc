import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createManualClock } from '../../../doubles/memory/index.ts';
import { createSqliteStore } from '../../../../src/adapters/store/sqlite/index.ts';
import { migrate, versionOf } from '../../../../src/adapters/store/sqlite/migrate.ts';
import { migrations } from '../../../../src/adapters/store/sqlite/migrations.ts';
import { applicationId } from '../../../../src/adapters/store/sqlite/open-database.ts';
import { knowledgeStoreContract, type KnowledgeStoreHarness } from '../../../contracts/knowledge-store.ts';
import { newFolder, sqliteHarness } from './harness.ts';

const minute = 60_000;

const harness: KnowledgeStoreHarness = {
  ...sqliteHarness,
  async openBounded(knowledgeBytes) {
    const folder = newFolder();
    const clock = createManualClock();
    const store = await createSqliteStore({ dataDir: folder.path, knowledgeBytes, clock });
    return {
      knowledge: store.listingCache,
      pass: async (ms) => clock.advance(ms),
      async dispose() {
        await store.close();
        folder.remove();
      },
    };
  },
};

describe('sqlite: knowledgeStoreContract', () => {
  for (const { name, run } of knowledgeStoreContract(harness)) test(name, run);
});

function folderOf(): string {
  const folder = newFolder();
  onTestFinished(() => folder.remove());
  return folder.path;
}

test('reading writes once a minute for each entry, and not more', async () => {
  const dataDir = folderOf();
  const clock = createManualClock();
  const store = await createSqliteStore({ dataDir, clock });
  await store.listingCache.put('scope', 'key', 'value');
  const observer = new DatabaseSync(join(dataDir, 'skep.db'), { readOnly: true });
  // It is another one whenever another connection has written.
  const writes = (): unknown => observer.prepare('PRAGMA data_version').get();
  const read = async (): Promise<unknown> => {
    for (let time = 0; time < 100; time += 1) expect(await store.listingCache.get('scope', 'key')).toBe('value');
    return writes();
  };
  const before = writes();
  expect(await read()).toEqual(before);
  clock.advance(minute - 1);
  expect(await read()).toEqual(before);
  clock.advance(1);
  const after = await read();
  expect(after).not.toEqual(before);
  expect(await read()).toEqual(after);
  observer.close();
  await store.close();
});

test('the size that is kept is that of the entries, also when the bound becomes smaller', async () => {
  const dataDir = folderOf();
  const sizes = (): unknown => {
    const observer = new DatabaseSync(join(dataDir, 'skep.db'), { readOnly: true });
    const sizes = observer.prepare('SELECT bytes, (SELECT coalesce(sum(bytes), 0) FROM knowledge) AS sum FROM knowledge_size').all();
    observer.close();
    return sizes;
  };
  const store = await createSqliteStore({ dataDir, knowledgeBytes: 1000 });
  for (let turn = 0; turn < 50; turn += 1) await store.listingCache.put(`scope ${turn % 3}`, `key ${turn % 7}`, 'ä'.repeat(turn * 7));
  const [{ bytes, sum }] = sizes() as [{ bytes: number; sum: number }];
  expect(bytes).toBe(sum);
  expect(bytes).toBeGreaterThan(500);
  expect(bytes).toBeLessThanOrEqual(1000);
  await store.close();
  const smaller = await createSqliteStore({ dataDir, knowledgeBytes: 100 });
  await smaller.listingCache.put('s', 'k', 'v');
  expect(sizes()).toEqual([{ bytes: 3, sum: 3 }]);
  await smaller.close();
});

test('a database of version 1 gets the table, and keeps its records', async () => {
  const dataDir = folderOf();
  const path = join(dataDir, 'skep.db');
  const first = new DatabaseSync(path);
  migrate(first, migrations.slice(0, 1), applicationId);
  first.exec(`INSERT INTO specs VALUES ('node', 'v1', 100); INSERT INTO api_keys VALUES ('k', 'ci', 'u', 'full', 'h', 1, NULL, NULL)`);
  expect(versionOf(first)).toBe(1);
  first.close();

  const store = await createSqliteStore({ dataDir });
  expect(await store.specs.firstSeen('node', 'v1', 200)).toBe(100);
  expect(await store.listingCache.get('scope', 'key')).toBeNull();
  await store.listingCache.put('scope', 'key', 'value');
  expect(await store.listingCache.get('scope', 'key')).toBe('value');
  await store.close();
  const database = new DatabaseSync(path, { readOnly: true });
  expect(versionOf(database)).toBe(migrations.length);
  expect(database.prepare('SELECT name FROM api_keys').all()).toEqual([{ name: 'ci' }]);
  database.close();
});

test('the oldest entry is found by the index, however many there are', () => {
  const database = new DatabaseSync(':memory:');
  migrate(database, migrations, applicationId);
  const plan = database.prepare('EXPLAIN QUERY PLAN SELECT id, bytes FROM knowledge ORDER BY used_at, id LIMIT 1').all();
  expect(plan.map(({ detail }) => detail)).toEqual(['SCAN knowledge USING COVERING INDEX knowledge_by_use']);
});
