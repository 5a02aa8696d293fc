import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { type ApiKeys, createApiKeyAuth, createApiKeys } from '../../../../src/adapters/auth/api-keys/index.ts';
import { createManualClock, createSeededRandom, type ManualClock } from '../../../doubles/memory/index.ts';
import { createInMemoryStore } from '../../../../src/adapters/store/sqlite/index.ts';
import type { Store } from '../../../../src/ports/store.ts';

let store: Store;
let clock: ManualClock;
let apiKeys: ApiKeys;

beforeEach(() => {
  store = createInMemoryStore();
  clock = createManualClock();
  apiKeys = createApiKeys({ keys: store.apiKeys, clock, random: createSeededRandom() });
});

describe('The static key', () => {
  const staticKey = 'a static key of the deployment';

  test('has the default user and full access', async () => {
    const auth = createApiKeyAuth({ staticKey, keys: store.apiKeys, clock });
    expect(await auth.authenticate(staticKey)).toEqual({ userId: 'default', keyName: 'SKEP_API_KEY', access: 'full' });
  });

  test('fails with `store_unavailable` if the store can not say whether it was revoked', async () => {
    await store.close();
    const auth = createApiKeyAuth({ staticKey, keys: store.apiKeys, clock });
    await expect(auth.authenticate(staticKey)).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('has the user and the access of its record if the store has one, and can be revoked there', async () => {
    const keys = createApiKeys({ keys: store.apiKeys, clock, random: createSeededRandom(7) });
    const { key } = await keys.create({ name: 'both', userId: 'somebody', access: 'read' });
    const auth = createApiKeyAuth({ staticKey: key, keys: store.apiKeys, clock });
    expect(await auth.authenticate(key)).toMatchObject({ userId: 'somebody', access: 'read' });
    await keys.revoke('both');
    await expect(auth.authenticate(key)).rejects.toMatchObject({ code: 'unauthorized' });
  });

  test.each([undefined, ''])('authenticates nobody if it is not set (%j)', async (none) => {
    const auth = createApiKeyAuth({ ...(none !== undefined && { staticKey: none }), keys: store.apiKeys, clock });
    for (const credential of ['', 'undefined', 'null', staticKey]) {
      await expect(auth.authenticate(credential)).rejects.toMatchObject({ code: 'unauthorized' });
    }
  });
});

describe('A key of the store', () => {
  test('is stored only as a hash', async () => {
    const { key, record } = await apiKeys.create({ name: 'ci' });
    expect(key).toMatch(/^skep_[A-Za-z0-9_-]{43}$/);
    expect(record.hash).toBe(createHash('sha256').update(key).digest('hex'));
    expect(JSON.stringify(await apiKeys.list())).not.toContain(key.slice(5));
    expect(await apiKeys.list()).toEqual([record]);
  });

  test.each(['skep:quarantine', 'skep:', '', ' ', 'a\nb', 'x'.repeat(101)])('can not be created for the user %j', async (userId) => {
    await expect(apiKeys.create({ name: 'ci', userId })).rejects.toMatchObject({ code: 'invalid_request' });
    expect(await apiKeys.list()).toEqual([]);
  });

  test('has the default user if none is named, so a rotated key keeps its sandboxes', async () => {
    const auth = createApiKeyAuth({ keys: store.apiKeys, clock });
    const { key } = await apiKeys.create({ name: 'ci' });
    expect(await auth.authenticate(key)).toEqual({ userId: 'default', keyName: 'ci', access: 'full' });
  });

  test('has its times of creation and of expiry in its record', async () => {
    const { key, record } = await apiKeys.create({ name: 'ci', expiresInMs: 1000 });
    expect(await createApiKeyAuth({ keys: store.apiKeys, clock }).authenticate(key)).toMatchObject({ expiresAt: record.expiresAt });
    expect(record).toMatchObject({ createdAt: clock.now(), expiresAt: clock.now() + 1000, revokedAt: null });
  });

  test('is refused when it has expired, and the cause has its record without the hash', async () => {
    const { key, record: { id } } = await apiKeys.create({ name: 'ci', expiresInMs: 1000 });
    clock.advance(1000);
    const refused = await createApiKeyAuth({ keys: store.apiKeys, clock }).authenticate(key).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'unauthorized', context: {}, cause: { message: `expired ${id}`, state: 'expired' } });
    expect((refused as { cause: { key: unknown } }).cause.key).toEqual({ id, name: 'ci', userId: 'default' });
  });

  test('can have the name of an expired key, so a job can renew its key', async () => {
    await apiKeys.create({ name: 'ci', expiresInMs: 1000 });
    clock.advance(1000);
    const { key } = await apiKeys.create({ name: 'ci', expiresInMs: 1000 });
    expect(await createApiKeyAuth({ keys: store.apiKeys, clock }).authenticate(key)).toMatchObject({ keyName: 'ci' });
    await expect(apiKeys.create({ name: 'ci' })).rejects.toMatchObject({ code: 'key_name_taken' });
  });

  test('can be limited to repositories if it has its own user', async () => {
    const { record } = await apiKeys.create({ name: 'ci', userId: 'ci', repositories: ['acme/*', 'group/**'] });
    expect(record).toMatchObject({ userId: 'ci', repositories: ['acme/*', 'group/**'] });
  });

  test('is revoked once, at the time of the clock', async () => {
    const { record } = await apiKeys.create({ name: 'ci' });
    clock.advance(5);
    expect(await apiKeys.revoke(record.id)).toBe(true);
    expect(await apiKeys.revoke('ci')).toBe(false);
    expect(await apiKeys.list()).toMatchObject([{ revokedAt: clock.now() }]);
  });

  test('can not be created if its name is taken, until the other key is revoked', async () => {
    await apiKeys.create({ name: 'ci' });
    await expect(apiKeys.create({ name: 'ci' })).rejects.toMatchObject({ code: 'key_name_taken', context: { name: 'ci' } });
    await apiKeys.revoke('ci');
    await expect(apiKeys.create({ name: 'ci' })).resolves.toMatchObject({ record: { name: 'ci' } });
  });

  test.each([
    { name: '' },
    { name: ' ' },
    { name: 'a\nb' },
    { name: 'x'.repeat(101) },
    { name: 'ci', userId: '' },
    { name: 'ci', userId: 'a\u0000' },
    { name: 'ci', repositories: ['acme/*'] },
    { name: 'ci', userId: 'default', repositories: ['acme/*'] },
    { name: 'ci', userId: 'ci', repositories: ['**'] },
    { name: 'ci', userId: 'ci', repositories: ['acme/*', 'acme/shop.git'] },
    { name: 'ci', expiresInMs: 0 },
    { name: 'ci', expiresInMs: -1 },
    { name: 'ci', expiresInMs: 1.5 },
    { name: 'ci', expiresInMs: Number.NaN },
    { name: 'ci', expiresInMs: Infinity },
    { name: 'ci', expiresInMs: Number.MAX_SAFE_INTEGER },
  ])('can not be created from %j', async (key) => {
    await expect(apiKeys.create(key)).rejects.toMatchObject({ code: 'invalid_request' });
    expect(await apiKeys.list()).toEqual([]);
  });
});
