import { createMemoryStore } from '../../../doubles/memory/index.ts';
import type { StoreHarness } from '../../../contracts/store.ts';

export const memoryHarness: StoreHarness = {
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
