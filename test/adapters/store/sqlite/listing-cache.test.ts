import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { createSqliteStore } from '../../../../src/adapters/store/sqlite/index.ts';
import { createManualClock } from '../../../doubles/memory/index.ts';
import { newFolder } from './harness.ts';

const minute = 60_000;

function newDataDir(): string {
  const folder = newFolder();
  onTestFinished(() => folder.remove());
  return folder.path;
}

test('reading an entry writes to the database once a minute at most', async () => {
  const dataDir = newDataDir();
  const clock = createManualClock();
  const store = await createSqliteStore({ dataDir, clock });
  await store.listingCache.put('scope', 'key', 'value');
  const observer = new DatabaseSync(join(dataDir, 'skep.db'), { readOnly: true });
  // SQLite changes this number whenever another connection has written.
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

test('the stored size is that of all entries, also after the limit became smaller', async () => {
  const dataDir = newDataDir();
  const sizes = (): unknown => {
    const observer = new DatabaseSync(join(dataDir, 'skep.db'), { readOnly: true });
    const sum = '(SELECT coalesce(sum(bytes), 0) FROM listing_cache)';
    const sizes = observer.prepare(`SELECT bytes, ${sum} AS sum FROM listing_cache_size`).all();
    observer.close();
    return sizes;
  };
  const store = await createSqliteStore({ dataDir, listingCacheBytes: 1000 });
  for (let n = 0; n < 50; n += 1) await store.listingCache.put(`scope ${n % 3}`, `key ${n % 7}`, 'ä'.repeat(n * 7));
  const [{ bytes, sum }] = sizes() as [{ bytes: number; sum: number }];
  expect(bytes).toBe(sum);
  expect(bytes).toBeGreaterThan(500);
  expect(bytes).toBeLessThanOrEqual(1000);
  await store.close();
  const smaller = await createSqliteStore({ dataDir, listingCacheBytes: 100 });
  await smaller.listingCache.put('s', 'k', 'v');
  expect(sizes()).toEqual([{ bytes: 3, sum: 3 }]);
  await smaller.close();
});
