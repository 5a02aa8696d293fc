import type { EventDraft } from '../../domain/event.ts';
import type { WrittenEvents } from '../../ports/event-store.ts';

/** Those who want to know when events were written through a store object. */
export interface EventListeners {
  subscribe(listener: (written: WrittenEvents) => void): () => void;
  /** Wakes them all; to be called once the events can be read. */
  wake(events: readonly EventDraft[]): void;
}

export function createEventListeners(): EventListeners {
  const subscriptions = new Set<{ readonly listener: (written: WrittenEvents) => void }>();

  return {
    subscribe(listener) {
      // The same function may be subscribed twice, and each subscription ends by itself.
      const subscription = { listener };
      subscriptions.add(subscription);
      return () => void subscriptions.delete(subscription);
    },
    wake(events) {
      if (events.length === 0 || subscriptions.size === 0) return;
      const written = concernedBy(events);
      // Those that subscribe while the others are woken come too late for this.
      for (const subscription of Array.from(subscriptions)) {
        if (subscriptions.has(subscription)) call(subscription.listener, written);
      }
    },
  };
}

/** What was written stays written, whatever a listener does: its error is a warning of the process. */
function call(listener: (written: WrittenEvents) => void, written: WrittenEvents): void {
  try {
    listener(written);
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : new Error(String(error)));
  }
}

function concernedBy(events: readonly EventDraft[]): WrittenEvents {
  return {
    ownerIds: new Set(events.map(({ ownerId }) => ownerId)),
    conversationIds: new Set(events.flatMap(({ conversationId }) => conversationId ?? [])),
    sandboxIds: new Set(events.flatMap(({ sandboxId }) => sandboxId ?? [])),
  };
}
