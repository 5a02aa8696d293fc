import { describe, test } from 'vitest';
import { apiKeyStoreContract } from '../../../contracts/api-key-store.ts';
import { conversationStoreContract } from '../../../contracts/conversation-store.ts';
import { eventStoreContract } from '../../../contracts/event-store.ts';
import { sandboxStoreContract } from '../../../contracts/sandbox-store.ts';
import { specStoreContract } from '../../../contracts/spec-store.ts';
import { storeContract } from '../../../contracts/store.ts';
import { memoryHarness } from './store-harness.ts';

const suites = { storeContract, sandboxStoreContract, conversationStoreContract, eventStoreContract, apiKeyStoreContract, specStoreContract };

for (const [name, suite] of Object.entries(suites)) {
  describe(`memory: ${name}`, () => {
    for (const { name, run } of suite(memoryHarness)) test(name, run);
  });
}
