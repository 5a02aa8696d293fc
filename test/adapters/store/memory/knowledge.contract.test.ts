import { describe, test } from 'vitest';
import { createMemoryStore } from '../../../doubles/memory/index.ts';
import { knowledgeStoreContract, type KnowledgeStoreHarness } from '../../../contracts/knowledge-store.ts';
import { memoryHarness } from './store-harness.ts';

const harness: KnowledgeStoreHarness = {
  ...memoryHarness,
  async openBounded(knowledgeBytes) {
    const store = createMemoryStore({ knowledgeBytes });
    return { knowledge: store.listingCache, pass: async () => undefined, dispose: () => store.close() };
  },
};

describe('memory: knowledgeStoreContract', () => {
  for (const { name, run } of knowledgeStoreContract(harness)) test(name, run);
});
