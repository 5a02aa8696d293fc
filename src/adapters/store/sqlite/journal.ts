import type { EventDraft } from '../../../domain/event.ts';
import type { WrittenEvents } from '../../../ports/event-store.ts';
import { createEventListeners } from '../event-listeners.ts';
import type { Connection } from './connection.ts';
import { rowOfEvent } from './event-row.ts';
import { insertEvent } from './event-statements.ts';

type Write = (events: readonly EventDraft[]) => void;

/** Writes events together with what they tell of. */
export interface Journal {
  /** A transaction that may write events; those who listen are woken once it is made. */
  transaction<T>(work: (write: Write) => T): T;
  subscribe(listener: (written: WrittenEvents) => void): () => void;
}

export function createJournal(connection: Connection): Journal {
  const listeners = createEventListeners();

  return {
    transaction(work) {
      const written: EventDraft[] = [];
      const result = connection.transaction(() =>
        work((events) => {
          for (const event of events) connection.run(insertEvent, rowOfEvent(event));
          written.push(...events);
        }),
      );
      listeners.wake(written);
      return result;
    },
    subscribe: (listener) => listeners.subscribe(listener),
  };
}
