import { describe, test } from 'vitest';
import { createMemoryStore } from '../../../src/adapters/memory/index.ts';
import { apiKeyStoreContract } from '../../contracts/api-key-store.ts';
import { conversationStoreContract } from '../../contracts/conversation-store.ts';
import { sandboxStoreContract } from '../../contracts/sandbox-store.ts';
import { specStoreContract } from '../../contracts/spec-store.ts';
import { storeContract, type StoreHarness } from '../../contracts/store.ts';

const harness: StoreHarness = {
  traits: { durable: false },
  async open() {
    let store = createMemoryStore();
    return {
      connections: [store],
      async reopen() {
        await store.close();
        store = createMemoryStore();
        return [store];
      },
      dispose: () => store.close(),
    };
  },
};

const suites = { storeContract, sandboxStoreContract, conversationStoreContract, apiKeyStoreContract, specStoreContract };

for (const [name, suite] of Object.entries(suites)) {
  describe(`memory: ${name}`, () => {
    for (const { name, run } of suite(harness)) test(name, run);
  });
}
