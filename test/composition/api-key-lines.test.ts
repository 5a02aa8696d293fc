import { describe, expect, test } from 'vitest';
import { createApiKeyAuth, createApiKeys } from '../../src/adapters/auth/api-keys/index.ts';
import { createManualClock } from '../doubles/memory/index.ts';
import { createInMemoryStore } from '../../src/adapters/store/sqlite/index.ts';
import { createSystemRandom } from '../../src/adapters/random/system-random.ts';
import { checkKey, setKeyText, storedKeyText } from '../../src/composition/executable/first-screen.ts';

/** A store of keys with a clock that the test controls. */
function world() {
  const clock = createManualClock();
  const { apiKeys } = createInMemoryStore();
  const deps = { clock, random: createSystemRandom() };
  const keys = createApiKeys({ keys: apiKeys, ...deps });
  const found = async (apiKey: string) => await checkKey(apiKey, createApiKeyAuth({ keys: apiKeys, clock, staticKey: apiKey }));
  const text = async (apiKey: string): Promise<string> => setKeyText(await found(apiKey)).join('\n');
  return { clock, keys, found, text, stored: async () => (await storedKeyText(apiKeys, deps)).join('\n') };
}

const mine = 'a-static-key-of-mine';

describe('the key in SKEP_API_KEY', () => {
  test('is valid if the store does not have it', async () => {
    const { found, text } = world();
    expect((await found(mine)).code).toBe('api_key_static');
    expect(await text(mine)).not.toContain('WARNING');
  });

  test('gets a warning if it was created for another store, since it cannot be revoked', async () => {
    const { key } = await world().keys.create({ name: 'ci' });
    expect(await world().found(key)).toMatchObject({ code: 'api_key_not_of_store', state: 'warning' });
    expect(await world().text(key)).toMatch(/WARNING: The key in SKEP_API_KEY was created by Skep, but not for this store/);
  });

  test('has the name and access of its record if the store has it, with a warning if it is read-only', async () => {
    const { keys, found, text } = world();
    const { key: full } = await keys.create({ name: 'ci' });
    const { key: read } = await keys.create({ name: 'look', access: 'read' });
    expect(await found(full)).toMatchObject({ code: 'api_key_stored', state: 'ok', data: { name: 'ci', access: 'full' } });
    expect(await text(full)).toMatch(/is the key ci of the store\.\nThe commands below/);
    expect(await text(full)).not.toContain('WARNING');
    expect(await found(read)).toMatchObject({ code: 'api_key_read_only', state: 'warning', data: { name: 'look', access: 'read' } });
    expect(await text(read)).toMatch(/WARNING: .*is the key look of the store, which can only read/);
  });

  test.each(['revoked', 'expired'])('gets a warning with advice if it was %s', async (how) => {
    const { clock, keys, found, text } = world();
    const { key } = await keys.create({ name: 'ci', expiresInMs: 1000 });
    if (how === 'revoked') await keys.revoke('ci');
    else clock.advance(1000);
    expect(await found(key)).toMatchObject({ code: 'api_key_invalid', state: 'failed' });
    expect(await text(key)).toMatch(/WARNING: The key in SKEP_API_KEY was revoked or has expired: every request with it is refused\.\nCreate a new key, and set it: .*keys create <name>/);
    expect(await text(key)).not.toContain(key);
  });
});

describe('without SKEP_API_KEY', () => {
  test('a key is created at the first start, and kept at later starts', async () => {
    const { stored, keys } = world();
    expect(await stored()).toMatch(/export SKEP_API_KEY=skep_/);
    expect(await stored()).toContain('If it is lost, create a new one');
    expect(await keys.list()).toHaveLength(1);
  });

  test('a store without a valid key gets a warning', async () => {
    const { keys, stored } = world();
    await stored();
    await keys.revoke('first');
    expect(await stored()).toMatch(/WARNING: All keys of the store are revoked or expired\. Create a new one: .*keys create/);
  });
});
