import { describe, expect, test } from 'vitest';
import { createApiKeyAuth, createApiKeys } from '../../src/adapters/auth/api-keys/index.ts';
import { createManualClock } from '../doubles/memory/index.ts';
import { createInMemoryStore } from '../../src/adapters/store/sqlite/index.ts';
import { createSystemRandom } from '../../src/adapters/random/system-random.ts';
import { loadConfig } from '../../src/composition/config/load.ts';
import { firstKey, keyState } from '../../src/composition/executable/api-key-state.ts';
import { firstScreen, type FirstScreen } from '../../src/composition/executable/first-screen.ts';

/** A store of keys, at a time that the test turns. */
function world() {
  const clock = createManualClock();
  const { apiKeys } = createInMemoryStore();
  const deps = { clock, random: createSystemRandom() };
  const keys = createApiKeys({ keys: apiKeys, ...deps });
  const state = async (apiKey: string) => await keyState(apiKey, createApiKeyAuth({ keys: apiKeys, clock, staticKey: apiKey }));
  return { clock, keys, state, first: async () => await firstKey(apiKeys, deps) };
}

const screen = (key: FirstScreen['key'], apiKey?: string): string =>
  firstScreen({ config: loadConfig(apiKey === undefined ? {} : { SKEP_API_KEY: apiKey }), url: 'http://127.0.0.1:3000', parts: [], key });

const mine = 'a-static-key-of-mine';

describe('the key that is set', () => {
  test('is valid where the store does not know it', async () => {
    const state = await world().state(mine);
    expect(state).toEqual({ kind: 'static' });
    expect(screen(state, mine)).not.toContain('WARNING');
    expect(screen(state, mine)).toMatch(/auth +api-keys +ok/);
  });

  test('is warned of where it was made for another store, since no revocation ends it', async () => {
    const { key } = await world().keys.create({ name: 'ci' });
    const state = await world().state(key);
    expect(state).toEqual({ kind: 'stray' });
    expect(screen(state, key)).toMatch(/WARNING: The key in SKEP_API_KEY was made by Skep, but not for this store/);
  });

  test('is what its record says where the store has it', async () => {
    const { keys, state } = world();
    const { key: full } = await keys.create({ name: 'ci' });
    const { key: read } = await keys.create({ name: 'look', access: 'read' });
    expect(await state(full)).toEqual({ kind: 'stored', name: 'ci', access: 'full' });
    expect(screen(await state(full), full)).toMatch(/is the key ci of the store\.\nThe commands below/);
    expect(screen(await state(full), full)).not.toContain('WARNING');
    expect(screen(await state(read), read)).toMatch(/WARNING: .*is the key look of the store, which may only read/);
  });

  test.each(['revoked', 'expired'])('is warned of where it was %s, with what to do', async (how) => {
    const { clock, keys, state } = world();
    const { key } = await keys.create({ name: 'ci', expiresInMs: 1000 });
    if (how === 'revoked') await keys.revoke('ci');
    else clock.advance(1000);
    expect(await state(key)).toEqual({ kind: 'refused' });
    const text = screen(await state(key), key);
    expect(text).toMatch(/auth +api-keys +NOT OK/);
    expect(text).toMatch(/WARNING: The key in SKEP_API_KEY was revoked or has expired: every request with it is refused\.\nMake another, and set it: .*keys create <name>/);
    expect(text).not.toContain(key);
  });
});

describe('without a key that is set', () => {
  test('one is made at the first start, and kept from then on', async () => {
    const { first } = world();
    const made = await first();
    expect(made).toEqual({ kind: 'made', key: expect.stringMatching(/^skep_/) });
    expect(screen(made)).toContain(made.kind === 'made' ? `export SKEP_API_KEY=${made.key}` : '-');
    expect(await first()).toEqual({ kind: 'kept' });
    expect(screen({ kind: 'kept' })).toContain('Lost? Make another');
  });

  test('a store in which none is valid any more is warned of', async () => {
    const { keys, first } = world();
    await first();
    await keys.revoke('first');
    expect(await first()).toEqual({ kind: 'none valid' });
    expect(screen({ kind: 'none valid' })).toMatch(/WARNING: every key of the store was revoked or has expired\. Make another: .*keys create/);
  });
});
