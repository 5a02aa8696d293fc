import { isInScope } from '../../../../src/domain/principal.ts';
import type { Event, EventDraft, EventKind } from '../../../../src/domain/event.ts';
import type { EventFilter, EventStore } from '../../../../src/ports/event-store.ts';
import { atOnce } from './records.ts';

/** The events. The other parts of the store write to them together with a record. */
export interface ReferenceEvents extends Omit<EventStore, 'subscribe'> {
  write(events: readonly EventDraft[]): void;
  forgetConversation(id: string, keeps?: readonly EventKind[]): void;
  /** Returns true if the conversation has a turn. Its events are not purged. */
  hasTurn: (conversationId: string | null) => boolean;
}

export function createReferenceEvents(): ReferenceEvents {
  // In the order of their sequence numbers.
  let log: Event[] = [];
  let latest = 0;

  function write(events: readonly EventDraft[]): void {
    for (const event of events) log.push({ ...event, sequence: (latest += 1) });
  }

  const events: ReferenceEvents = {
    hasTurn: () => false,
    write,
    forgetConversation(id, keeps = []) {
      log = log.filter(({ conversationId, kind }) => conversationId !== id || keeps.includes(kind));
    },

    append: (events) =>
      atOnce(() => {
        write(events);
        return events.length === 0 ? 0 : latest;
      }),

    read: (filter, after, limit) =>
      atOnce(() => log.filter(({ sequence }) => sequence > after).filter(matcher(filter)).slice(0, limit)),

    latest: () => atOnce(() => latest),

    purge: (before, limit) =>
      atOnce(() => {
        const older = log.filter(({ at, conversationId }) => at < before && !events.hasTurn(conversationId));
        const sorted = older.toSorted((a, b) => a.at - b.at || a.sequence - b.sequence);
        const forgotten = new Set(sorted.slice(0, limit));
        log = log.filter((event) => !forgotten.has(event));
        return forgotten.size;
      }),
  };
  return events;
}

function matcher({ ownerId, conversationId, sandboxId, kinds }: EventFilter): (event: Event) => boolean {
  const everywhere = conversationId === undefined && sandboxId === undefined;
  return (event) =>
    isInScope(event.ownerId, ownerId) &&
    (everywhere ||
      (conversationId !== undefined && event.conversationId === conversationId) ||
      (sandboxId !== undefined && event.conversationId === null && event.sandboxId === sandboxId)) &&
    (kinds === undefined || kinds.includes(event.kind));
}
