import { deepEqual, equal } from 'node:assert/strict';
import type { LoginCode } from '../../src/domain/api-key.ts';
import type { ContractCase } from './contract.ts';
import { hostileTexts, someApiKey, someTime } from './records.ts';
import { closedCases, idsOf, race, storeCase, type StoreHarness } from './store.ts';

/** The contract of every `ApiKeyStore`. */
export function apiKeyStoreContract(harness: StoreHarness): ContractCase[] {
  return [
    ...recordCases(harness),
    ...revokeCases(harness),
    ...loginCases(harness),
    ...closedCases(harness, {
      insert: ({ apiKeys }) => apiKeys.insert(someApiKey('one')),
      findByHash: ({ apiKeys }) => apiKeys.findByHash('one'),
      list: ({ apiKeys }) => apiKeys.list(),
      revoke: ({ apiKeys }) => apiKeys.revoke('one', someTime),
      insertLoginCode: ({ apiKeys }) => apiKeys.insertLoginCode(someCode, someTime),
      takeLoginCode: ({ apiKeys }) => apiKeys.takeLoginCode('one', someTime),
    }),
  ];
}

function recordCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'finds a key by its hash, with all its fields', async ([{ apiKeys }]) => {
      const full = someApiKey('full', { access: 'admin', repositories: ['acme/*', 'group/**'], expiresAt: someTime + 1, revokedAt: someTime + 2 });
      for (const key of [full, someApiKey('bare')]) {
        equal(await apiKeys.insert(key), true);
        deepEqual(await apiKeys.findByHash(key.hash), key);
      }
    }),
    storeCase(harness, 'finds no key for any other hash', async ([{ apiKeys }]) => {
      await apiKeys.insert(someApiKey('one', { hash: 'abc' }));
      for (const hash of ['ABC', 'ab', 'abcd', 'abc ', '', '%', 'one', 'name of one']) equal(await apiKeys.findByHash(hash), null);
    }),
    storeCase(harness, 'stores special characters and SQL in texts unchanged', async ([{ apiKeys }]) => {
      for (const [index, text] of hostileTexts.entries()) {
        const key = someApiKey(`k${index}`, { name: text, userId: text, hash: text });
        equal(await apiKeys.insert(key), true);
        deepEqual(await apiKeys.findByHash(text), key);
      }
      equal((await apiKeys.list()).length, hostileTexts.length);
    }),
    storeCase(harness, 'lists all keys, oldest first', async ([{ apiKeys }]) => {
      deepEqual(await apiKeys.list(), []);
      await apiKeys.insert(someApiKey('c', { createdAt: someTime + 1 }));
      await apiKeys.insert(someApiKey('b', { createdAt: someTime + 2, revokedAt: someTime }));
      await apiKeys.insert(someApiKey('a', { createdAt: someTime, expiresAt: 1 }));
      deepEqual(idsOf(await apiKeys.list()), ['a', 'c', 'b']);
    }),
    storeCase(harness, 'refuses a second key with the name of a key that is not revoked', async ([{ apiKeys }]) => {
      const first = someApiKey('first', { name: 'ci' });
      equal(await apiKeys.insert(first), true);
      equal(await apiKeys.insert(someApiKey('second', { name: 'ci', userId: 'bob' })), false);
      deepEqual(await apiKeys.list(), [first]);
      await apiKeys.revoke('ci', someTime);
      equal(await apiKeys.insert(someApiKey('third', { name: 'ci' })), true);
      deepEqual(idsOf(await apiKeys.list()), ['first', 'third']);
    }),
    storeCase(harness, 'accepts a second key with the name of an expired key, and revokes the expired one', async ([{ apiKeys }]) => {
      const [first, second] = [someApiKey('first', { name: 'ci', expiresAt: someTime + 5 }), someApiKey('second', { name: 'ci', createdAt: someTime + 5 })];
      const other = someApiKey('other', { name: 'else', expiresAt: 1 });
      for (const key of [first, other]) await apiKeys.insert(key);
      equal(await apiKeys.insert({ ...second, createdAt: someTime + 4 }), false);
      equal(await apiKeys.insert(second), true);
      deepEqual(await apiKeys.findByHash(first.hash), { ...first, revokedAt: second.createdAt });
      deepEqual(await apiKeys.findByHash(other.hash), other);
      equal(await apiKeys.revoke('ci', someTime + 9), true);
      equal((await apiKeys.findByHash(second.hash))?.revokedAt, someTime + 9);
    }),
    storeCase(harness, 'accepts one of 30 concurrent inserts with the same name', async (connections) => {
      const outcomes = await race(connections, 30, ({ apiKeys }, turn) => apiKeys.insert(someApiKey(`k${turn}`, { name: 'ci' })));
      equal(outcomes.filter(Boolean).length, 1);
      equal((await connections[0].apiKeys.list()).length, 1);
    }),
  ];
}

const someCode: LoginCode = { hash: 'hash-of-code', userId: 'ann', access: 'admin', expiresAt: someTime + 10 };

function loginCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'returns a login code once, and only before it expires', async ([{ apiKeys }]) => {
      await apiKeys.insertLoginCode(someCode, someTime);
      await apiKeys.insertLoginCode({ ...someCode, hash: 'late' }, someTime);
      for (const other of ['', '%', 'HASH-OF-CODE', 'hash-of-cod']) equal(await apiKeys.takeLoginCode(other, someTime), null);
      deepEqual(await apiKeys.takeLoginCode(someCode.hash, someTime + 9), someCode);
      equal(await apiKeys.takeLoginCode(someCode.hash, someTime + 9), null);
      equal(await apiKeys.takeLoginCode('late', someTime + 10), null);
      deepEqual(await apiKeys.list(), []);
    }),
    storeCase(harness, 'deletes expired login codes when another code is added', async ([{ apiKeys }]) => {
      await apiKeys.insertLoginCode(someCode, someTime);
      await apiKeys.insertLoginCode({ ...someCode, hash: 'other', expiresAt: someTime + 20 }, someTime + 10);
      equal(await apiKeys.takeLoginCode(someCode.hash, someTime), null);
    }),
    storeCase(harness, 'returns a login code to one of 20 concurrent callers', async (connections) => {
      await connections[0].apiKeys.insertLoginCode(someCode, someTime);
      const outcomes = await race(connections, 20, ({ apiKeys }) => apiKeys.takeLoginCode(someCode.hash, someTime));
      deepEqual(outcomes.filter((code) => code !== null), [someCode]);
    }),
  ];
}

function revokeCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'revokes a key by id or by name, and only once', async ([{ apiKeys }]) => {
      const [one, two] = [someApiKey('one', { name: 'uno' }), someApiKey('two', { name: 'due' })];
      await apiKeys.insert(one);
      await apiKeys.insert(two);
      equal(await apiKeys.revoke('one', someTime), true);
      equal(await apiKeys.revoke('due', someTime + 1), true);
      for (const again of ['one', 'uno', 'two', 'due', 'nobody', '', '%']) equal(await apiKeys.revoke(again, someTime + 9), false);
      deepEqual(await apiKeys.findByHash(one.hash), { ...one, revokedAt: someTime });
      deepEqual(await apiKeys.findByHash(two.hash), { ...two, revokedAt: someTime + 1 });
    }),
    storeCase(harness, 'prefers the id if it is also the name of another key', async ([{ apiKeys }]) => {
      await apiKeys.insert(someApiKey('b', { name: 'a' }));
      await apiKeys.insert(someApiKey('a', { name: 'z', createdAt: someTime + 1 }));
      equal(await apiKeys.revoke('a', someTime), true);
      deepEqual((await apiKeys.list()).map(({ id, revokedAt }) => [id, revokedAt]), [
        ['b', null],
        ['a', someTime],
      ]);
      equal(await apiKeys.revoke('a', someTime + 1), true);
      equal((await apiKeys.findByHash('hash-of-b'))?.revokedAt, someTime + 1);
    }),
    storeCase(harness, 'lets one of 20 concurrent revocations succeed', async (connections) => {
      await connections[0].apiKeys.insert(someApiKey('one'));
      const outcomes = await race(connections, 20, ({ apiKeys }, turn) => apiKeys.revoke('one', someTime + turn));
      deepEqual(outcomes.filter(Boolean).length, 1);
      equal((await connections[0].apiKeys.findByHash('hash-of-one'))?.revokedAt, someTime + outcomes.indexOf(true));
    }),
  ];
}
