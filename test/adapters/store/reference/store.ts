import type { Store } from '../../../../src/ports/store.ts';
import { createReferenceConversations } from './conversations.ts';
import { createReferenceEvents } from './events.ts';
import { createReferenceSandboxes } from './sandboxes.ts';

export type ReferenceStore = Pick<Store, 'sandboxes' | 'conversations'> & { readonly events: Omit<Store['events'], 'subscribe'> };

/** A store that is as simple as possible: records in maps, and filters over all of them. SQLite is compared with it. */
export function createReferenceStore(): ReferenceStore {
  const events = createReferenceEvents();
  return { sandboxes: createReferenceSandboxes(events), conversations: createReferenceConversations(events), events };
}
