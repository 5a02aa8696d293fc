import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ListingCache } from '../../src/ports/listing-cache.ts';
import type { ContractCase } from './contract.ts';
import { hostileTexts } from './records.ts';
import { closedCases, race, storeCase, type StoreHarness } from './store.ts';

export interface KnowledgeStoreHarness extends StoreHarness {
  /** Opens a new, empty store that keeps so many bytes of knowledge at most. */
  openBounded(maxBytes: number): Promise<BoundedKnowledge>;
}

export interface BoundedKnowledge {
  readonly knowledge: ListingCache;
  /** Lets so much time pass for the store. */
  readonly pass: (ms: number) => Promise<void>;
  dispose(): Promise<void>;
}

/** What every `KnowledgeStore` must do. */
export function knowledgeStoreContract(harness: KnowledgeStoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'gives back what was put, and nothing else', async ([{ listingCache: knowledge }]) => {
      equal(await knowledge.get('scope', 'key'), null);
      await knowledge.put('scope', 'key', 'value');
      equal(await knowledge.get('scope', 'key'), 'value');
      for (const [scope, key] of [['scope', 'other'], ['other', 'key'], ['key', 'scope'], ['scopek', 'ey'], ['', 'scopekey']] as const) {
        equal(await knowledge.get(scope, key), null);
      }
    }),
    storeCase(harness, 'puts a value in the place of an earlier one, in its scope only', async ([{ listingCache: knowledge }]) => {
      await knowledge.put('one', 'key', '1');
      await knowledge.put('two', 'key', '2');
      await knowledge.put('one', 'key', '3');
      deepEqual([await knowledge.get('one', 'key'), await knowledge.get('two', 'key')], ['3', '2']);
    }),
    storeCase(harness, 'takes every text for data', async ([{ listingCache: knowledge }]) => {
      for (const [index, text] of hostileTexts.entries()) await knowledge.put(text, text, `${index}${text}`);
      for (const [index, text] of hostileTexts.entries()) equal(await knowledge.get(text, text), `${index}${text}`);
    }),
    storeCase(harness, 'keeps a large value as it is', async ([{ listingCache: knowledge }]) => {
      const value = 'größe 🐝 '.repeat(100_000);
      await knowledge.put('scope', 'key', value);
      equal(await knowledge.get('scope', 'key'), value);
    }),
    storeCase(harness, 'keeps one of many values that are put at once', async (connections) => {
      await race(connections, 20, ({ listingCache: knowledge }, turn) => knowledge.put('scope', 'key', String(turn)));
      const answers = await race(connections, 4, ({ listingCache: knowledge }) => knowledge.get('scope', 'key'));
      equal(new Set(answers).size, 1);
      ok(Number(answers[0]) < 20);
    }),
    storeCase(harness, `${harness.traits.durable ? 'keeps' : 'forgets'} what is known when it is closed`, async ([store], open) => {
      await store.listingCache.put('scope', 'key', 'value');
      const [reopened] = await open.reopen();
      equal(await reopened.listingCache.get('scope', 'key'), harness.traits.durable ? 'value' : null);
    }),
    ...boundCases(harness),
    ...closedCases(harness, {
      'knowledge.get': ({ listingCache: knowledge }) => knowledge.get('scope', 'key'),
      'knowledge.put': ({ listingCache: knowledge }) => knowledge.put('scope', 'key', 'value'),
    }),
  ];
}

const minute = 60_000;
const large = 'x'.repeat(3000);

function boundCases(harness: KnowledgeStoreHarness): ContractCase[] {
  const bounded = (name: string, run: (store: BoundedKnowledge) => Promise<void>): ContractCase => ({
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
    bounded('keeps no more than its bound, and of that the latest', async ({ knowledge, pass }) => {
      const keys = Array.from({ length: 100 }, (_, index) => `key ${index}`);
      for (const key of keys) {
        await knowledge.put('scope', key, 'ä'.repeat(450));
        await pass(1);
      }
      const kept = await keysOf(knowledge, keys);
      ok(kept.length >= 5 && kept.length <= 11, `${kept.length} are kept`);
      deepEqual(kept, keys.slice(-kept.length));
    }),
    bounded('lets go first of what was not used for longest', async ({ knowledge, pass }) => {
      for (const key of ['a', 'b', 'c']) {
        await knowledge.put('scope', key, large);
        await pass(2 * minute);
      }
      equal(await knowledge.get('scope', 'a'), large);
      await pass(2 * minute);
      await knowledge.put('other', 'd', large);
      deepEqual(await keysOf(knowledge, ['a', 'b', 'c']), ['a', 'c']);
      equal(await knowledge.get('other', 'd'), large);
    }),
    bounded('does not count what was replaced', async ({ knowledge }) => {
      await knowledge.put('scope', 'a', large);
      for (let round = 0; round < 20; round += 1) await knowledge.put('scope', 'b', large.slice(round));
      deepEqual(await keysOf(knowledge, ['a', 'b']), ['a', 'b']);
    }),
    bounded('keeps nothing that is larger than its bound, nor what that was to replace, and everything else', async ({ knowledge }) => {
      await knowledge.put('scope', 'a', large);
      await knowledge.put('scope', 'b', large);
      await knowledge.put('scope', 'b', large.repeat(4));
      deepEqual(await keysOf(knowledge, ['a', 'b']), ['a']);
      await knowledge.put('scope', 'b', '');
      equal(await knowledge.get('scope', 'b'), '');
    }),
  ];
}

async function keysOf(knowledge: ListingCache, keys: readonly string[]): Promise<string[]> {
  const kept: string[] = [];
  for (const key of keys) if ((await knowledge.get('scope', key)) !== null) kept.push(key);
  return kept;
}
