import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ListingCache } from '../../src/ports/listing-cache.ts';
import type { ContractCase } from './contract.ts';
import { hostileTexts } from './records.ts';
import { closedCases, race, storeCase, type StoreHarness } from './store.ts';

export interface ListingCacheHarness extends StoreHarness {
  /** Opens a new, empty store that keeps at most `maxBytes` of listings. */
  openBounded(maxBytes: number): Promise<BoundedListingCache>;
}

export interface BoundedListingCache {
  readonly cache: ListingCache;
  /** Lets `ms` milliseconds pass for the store. */
  readonly pass: (ms: number) => Promise<void>;
  dispose(): Promise<void>;
}

/** The contract of every `ListingCache`. */
export function listingCacheContract(harness: ListingCacheHarness): ContractCase[] {
  return [
    storeCase(harness, 'returns the stored value, and null for any other key or scope', async ([{ listingCache: cache }]) => {
      equal(await cache.get('scope', 'key'), null);
      await cache.put('scope', 'key', 'value');
      equal(await cache.get('scope', 'key'), 'value');
      for (const [scope, key] of [['scope', 'other'], ['other', 'key'], ['key', 'scope'], ['scopek', 'ey'], ['', 'scopekey']] as const) {
        equal(await cache.get(scope, key), null);
      }
    }),
    storeCase(harness, 'replaces a value in its own scope only', async ([{ listingCache: cache }]) => {
      await cache.put('one', 'key', '1');
      await cache.put('two', 'key', '2');
      await cache.put('one', 'key', '3');
      deepEqual([await cache.get('one', 'key'), await cache.get('two', 'key')], ['3', '2']);
    }),
    storeCase(harness, 'stores special characters and SQL in keys and values unchanged', async ([{ listingCache: cache }]) => {
      for (const [index, text] of hostileTexts.entries()) await cache.put(text, text, `${index}${text}`);
      for (const [index, text] of hostileTexts.entries()) equal(await cache.get(text, text), `${index}${text}`);
    }),
    storeCase(harness, 'stores a large value unchanged', async ([{ listingCache: cache }]) => {
      const value = 'größe 🐝 '.repeat(100_000);
      await cache.put('scope', 'key', value);
      equal(await cache.get('scope', 'key'), value);
    }),
    storeCase(harness, 'keeps exactly one of many values that are stored at once', async (connections) => {
      await race(connections, 20, ({ listingCache: cache }, turn) => cache.put('scope', 'key', String(turn)));
      const answers = await race(connections, 4, ({ listingCache: cache }) => cache.get('scope', 'key'));
      equal(new Set(answers).size, 1);
      ok(Number(answers[0]) < 20);
    }),
    storeCase(harness, `${harness.traits.durable ? 'keeps' : 'forgets'} its values when it is closed`, async ([store], open) => {
      await store.listingCache.put('scope', 'key', 'value');
      const [reopened] = await open.reopen();
      equal(await reopened.listingCache.get('scope', 'key'), harness.traits.durable ? 'value' : null);
    }),
    ...boundCases(harness),
    ...closedCases(harness, {
      get: ({ listingCache: cache }) => cache.get('scope', 'key'),
      put: ({ listingCache: cache }) => cache.put('scope', 'key', 'value'),
    }),
  ];
}

const minute = 60_000;
const large = 'x'.repeat(3000);

function boundCases(harness: ListingCacheHarness): ContractCase[] {
  const bounded = (name: string, run: (store: BoundedListingCache) => Promise<void>): ContractCase => ({
    name,
    async run() {
      const store = await harness.openBounded(10_000);
      try {
        await run(store);
      } finally {
        await store.dispose();
      }
    },
  });
  return [
    bounded('keeps the newest values up to its size limit', async ({ cache, pass }) => {
      const keys = Array.from({ length: 100 }, (_, index) => `key ${index}`);
      for (const key of keys) {
        await cache.put('scope', key, 'ä'.repeat(450));
        await pass(1);
      }
      const kept = await keysOf(cache, keys);
      ok(kept.length >= 5 && kept.length <= 11, `${kept.length} are kept`);
      deepEqual(kept, keys.slice(-kept.length));
    }),
    bounded('evicts the least recently used value first', async ({ cache, pass }) => {
      for (const key of ['a', 'b', 'c']) {
        await cache.put('scope', key, large);
        await pass(2 * minute);
      }
      equal(await cache.get('scope', 'a'), large);
      await pass(2 * minute);
      await cache.put('other', 'd', large);
      deepEqual(await keysOf(cache, ['a', 'b', 'c']), ['a', 'c']);
      equal(await cache.get('other', 'd'), large);
    }),
    bounded('does not count replaced values towards the size limit', async ({ cache }) => {
      await cache.put('scope', 'a', large);
      for (let round = 0; round < 20; round += 1) await cache.put('scope', 'b', large.slice(round));
      deepEqual(await keysOf(cache, ['a', 'b']), ['a', 'b']);
    }),
    bounded('does not store a value larger than the size limit, and drops the value that it replaces', async ({ cache }) => {
      await cache.put('scope', 'a', large);
      await cache.put('scope', 'b', large);
      await cache.put('scope', 'b', large.repeat(4));
      deepEqual(await keysOf(cache, ['a', 'b']), ['a']);
      await cache.put('scope', 'b', '');
      equal(await cache.get('scope', 'b'), '');
    }),
  ];
}

async function keysOf(cache: ListingCache, keys: readonly string[]): Promise<string[]> {
  const kept: string[] = [];
  for (const key of keys) if ((await cache.get('scope', key)) !== null) kept.push(key);
  return kept;
}
