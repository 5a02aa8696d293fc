import type { Store } from '../../../../src/ports/store.ts';
import { createReferenceConversations } from './conversations.ts';
import { createReferenceEvents } from './events.ts';
import { createReferenceSandboxes } from './sandboxes.ts';

export type ReferenceStore = Pick<Store, 'sandboxes' | 'conversations'> & { readonly events: Omit<Store['events'], 'subscribe'> };

/** What a store must do, written down in the plainest way: records in maps, and filters over all of them. */
export function createReferenceStore(): ReferenceStore {
  const events = createReferenceEvents();
  return { sandboxes: createReferenceSandboxes(events), conversations: createReferenceConversations(events), events };
}
