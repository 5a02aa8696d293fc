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

for (const [place, harness] of Object.entries({ 'in a folder': sqliteHarness, 'in memory': inMemoryHarness })) {
  for (const [name, suite] of Object.entries(suites)) {
    describe(`SQLite ${place}: ${name}`, () => {
      for (const { name, run } of suite(harness)) test(name, run);
    });
  }
}
