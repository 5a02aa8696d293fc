import { describe, test } from 'vitest';
import { createApiKeyAuth, createApiKeys } from '../../../../src/adapters/auth/api-keys/index.ts';
import { createManualClock, createSeededRandom } from '../../../doubles/memory/index.ts';
import { createInMemoryStore } from '../../../../src/adapters/store/sqlite/index.ts';
import { authContract } from '../../../contracts/auth.ts';

const suite = authContract({
  async open() {
    const clock = createManualClock();
    const store = createInMemoryStore();
    const apiKeys = createApiKeys({ keys: store.apiKeys, clock, random: createSeededRandom() });
    const names = new Map<string, string>();
    return {
      auth: createApiKeyAuth({ staticKey: 'a static key of the deployment', keys: store.apiKeys, clock }),
      async issue({ userId, keyName, access, repositories = null }, expiresInMs) {
        const { key } = await apiKeys.create({ name: keyName, userId, access, repositories, ...(expiresInMs !== undefined && { expiresInMs }) });
        names.set(key, keyName);
        return key;
      },
      revoke: async (credential) => void (await apiKeys.revoke(names.get(credential) ?? '')),
      pass: (ms) => clock.advance(ms),
      breakStore: () => store.close(),
      dispose: () => store.close(),
    };
  },
});

describe('Auth contract: API keys', () => {
  for (const { name, run } of suite) test(name, run);
});
