import type { Event, EventDraft } from '../../../domain/event.ts';
import type { EventFilter, EventStore } from '../../../ports/event-store.ts';
import { createEventListeners } from '../event-listeners.ts';
import { type StoreState, whileOpen } from './state.ts';

/** The log as the other parts of the store write to it: at once, together with their record. */
export interface MemoryEvents extends EventStore {
  write(events: readonly EventDraft[]): void;
  forgetConversation(id: string): void;
}

export function createMemoryEvents(state: StoreState): MemoryEvents {
  // In the order of their sequence numbers.
  let log: Event[] = [];
  let latest = 0;
  const listeners = createEventListeners();

  function write(events: readonly EventDraft[]): void {
    for (const event of events) log.push({ ...event, sequence: (latest += 1) });
    listeners.wake(events);
  }

  return {
    write,
    forgetConversation(id) {
      log = log.filter(({ conversationId }) => conversationId !== id);
    },

    append: (events) => whileOpen(state, () => write(events)),

    read: (filter, after, limit) =>
      whileOpen(state, () => {
        const accepts = matcher(filter);
        const found: Event[] = [];
        for (let at = placeAfter(log, after); at < log.length && found.length < limit; at += 1) {
          const event = log[at];
          if (event !== undefined && accepts(event)) found.push(event);
        }
        return found;
      }),

    latest: () => whileOpen(state, () => latest),

    subscribe: (listener) => listeners.subscribe(listener),

    purge: (before, limit) =>
      whileOpen(state, () => {
        const older = log.filter(({ at }) => at < before).toSorted((a, b) => a.at - b.at || a.sequence - b.sequence);
        const forgotten = new Set(older.slice(0, limit));
        log = log.filter((event) => !forgotten.has(event));
        return forgotten.size;
      }),
  };
}

/** Where those with a higher sequence number begin. */
function placeAfter(log: readonly Event[], sequence: number): number {
  let [low, high] = [0, log.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((log[middle]?.sequence ?? Infinity) > sequence) high = middle;
    else low = middle + 1;
  }
  return low;
}

function matcher({ ownerId, conversationId, sandboxId, kinds }: EventFilter): (event: Event) => boolean {
  const everywhere = conversationId === undefined && sandboxId === undefined;
  return (event) =>
    event.ownerId === ownerId &&
    (everywhere ||
      (conversationId !== undefined && event.conversationId === conversationId) ||
      (sandboxId !== undefined && event.conversationId === null && event.sandboxId === sandboxId)) &&
    (kinds === undefined || kinds.includes(event.kind));
}
