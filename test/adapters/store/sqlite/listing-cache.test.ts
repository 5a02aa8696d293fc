import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { createListingCache } from '../../../../src/adapters/store/listing-cache.ts';
import { createSqliteStore } from '../../../../src/adapters/store/sqlite/index.ts';
import { createManualClock } from '../../../doubles/memory/index.ts';
import { newFolder, openDb } from './harness.ts';

const minute = 60_000;

/** A store in a folder, with a connection for caches and another for looking. */
async function newDatabase() {
  const folder = newFolder();
  await (await createSqliteStore({ dataDir: folder.path })).close();
  const path = join(folder.path, 'skep.db');
  const { db } = openDb(path);
  const observer = new DatabaseSync(path, { readOnly: true });
  onTestFinished(async () => {
    observer.close();
    await db.destroy();
    folder.remove();
  });
  return { db, observer };
}

test('reading an entry writes to the database once a minute at most', async () => {
  const { db, observer } = await newDatabase();
  const clock = createManualClock();
  const cache = createListingCache(db, { maxBytes: 1000, now: () => clock.now() });
  await cache.put('scope', 'key', 'value');
  // SQLite changes this number whenever another connection has written.
  const writes = (): unknown => observer.prepare('PRAGMA data_version').get();
  const read = async (): Promise<unknown> => {
    for (let time = 0; time < 100; time += 1) expect(await cache.get('scope', 'key')).toBe('value');
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
});

test('the stored size is that of all entries, also after the limit became smaller', async () => {
  const { db, observer } = await newDatabase();
  const sum = '(SELECT coalesce(sum(bytes), 0) FROM listing_cache)';
  const sizes = (): unknown => observer.prepare(`SELECT bytes, ${sum} AS sum FROM listing_cache_size`).all();
  const cache = createListingCache(db, { maxBytes: 1000, now: Date.now });
  for (let n = 0; n < 50; n += 1) await cache.put(`scope ${n % 3}`, `key ${n % 7}`, 'ä'.repeat(n * 7));
  const [{ bytes, sum: all }] = sizes() as [{ bytes: number; sum: number }];
  expect(bytes).toBe(all);
  expect(bytes).toBeGreaterThan(500);
  expect(bytes).toBeLessThanOrEqual(1000);
  await createListingCache(db, { maxBytes: 100, now: Date.now }).put('s', 'k', 'v');
  expect(sizes()).toEqual([{ bytes: 3, sum: 3 }]);
});
