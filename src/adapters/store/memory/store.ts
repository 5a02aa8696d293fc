import type { Store } from '../../../ports/store.ts';
import { createMemoryKnowledge } from './listing-cache.ts';
import { createMemoryApiKeys } from './api-keys.ts';
import { createMemoryConversations } from './conversations.ts';
import { createMemoryEvents } from './events.ts';
import { createMemorySandboxes } from './sandboxes.ts';
import { createMemorySpecs } from './specs.ts';
import { createStoreState } from './state.ts';

export interface MemoryStoreOptions {
  /** How much knowledge is kept, in bytes. */
  readonly knowledgeBytes?: number;
}

/** A store that is gone with the process, for tests. It keeps the records it is given, not copies of them. */
export function createMemoryStore({ knowledgeBytes = 64 * 1024 * 1024 }: MemoryStoreOptions = {}): Store {
  const state = createStoreState();
  const events = createMemoryEvents(state);
  return {
    name: 'memory',
    sandboxes: createMemorySandboxes(state, events),
    conversations: createMemoryConversations(state, events),
    events,
    apiKeys: createMemoryApiKeys(state),
    specs: createMemorySpecs(state),
    listingCache: createMemoryKnowledge(state, knowledgeBytes),
    check: async () =>
      state.closed ? { ok: false, detail: 'memory: it is closed; make a new one' } : { ok: true, detail: 'memory: answers' },
    close: async () => {
      state.closed = true;
    },
  };
}
