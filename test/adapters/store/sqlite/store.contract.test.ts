import { describe, test } from 'vitest';
import { apiKeyStoreContract } from '../../../contracts/api-key-store.ts';
import { conversationStoreContract } from '../../../contracts/conversation-store.ts';
import { executionStoreContract } from '../../../contracts/execution-store.ts';
import { eventStoreContract } from '../../../contracts/event-store.ts';
import { listingCacheContract } from '../../../contracts/listing-cache.ts';
import { sandboxStoreContract } from '../../../contracts/sandbox-store.ts';
import { specStoreContract } from '../../../contracts/spec-store.ts';
import { storeContract } from '../../../contracts/store.ts';
import { inMemoryHarness, sqliteHarness } from './harness.ts';

const suites = {
  storeContract, sandboxStoreContract, conversationStoreContract, eventStoreContract, apiKeyStoreContract, specStoreContract,
  listingCacheContract, executionStoreContract,
};

for (const [name, suite] of Object.entries(suites)) {
  describe(`SQLite in a folder: ${name}`, () => {
    for (const { name, run } of suite(sqliteHarness)) test(name, run);
  });
}

// Both have the same statements. Only opening and closing differ.
describe('SQLite in memory', () => {
  for (const { name, run } of storeContract(inMemoryHarness)) test(name, run);
});
