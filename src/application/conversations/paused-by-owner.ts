import type { Conversation } from '../../domain/conversation.ts';
import type { EventKind } from '../../domain/event.ts';
import type { EventStore } from '../../ports/event-store.ts';

const kinds: readonly EventKind[] = ['message', 'sandbox_moved'];
const pageSize = 1000;

/**
 * Did the owner pause the sandbox after the last message to the conversation came? Then what waits does not wake it; the
 * next message does. Any other rest, an end from outside included, keeps nothing waiting. The log knows.
 */
export async function pausedByOwner(store: EventStore, { id, ownerId, sandboxId }: Conversation): Promise<boolean> {
  let paused = false;
  for (let after = 0; ; ) {
    const events = await store.read({ ownerId, conversationId: id, sandboxId, kinds }, after, pageSize);
    for (const { kind, data, actor } of events) {
      if (kind === 'message' && data.role === 'user') paused = false;
      if (kind === 'sandbox_moved' && data.to === 'PAUSING') paused = actor === 'user';
    }
    const last = events.at(-1);
    if (events.length < pageSize || last === undefined) return paused;
    after = last.sequence;
  }
}
