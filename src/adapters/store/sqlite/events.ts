import type { EventStore } from '../../../ports/event-store.ts';
import type { Connection } from './connection.ts';
import { readFor, readValues } from './event-reading.ts';
import { eventOf } from './event-row.ts';
import { latestSequence, purgeEvents } from './event-statements.ts';
import type { Journal } from './journal.ts';

export function createEvents(connection: Connection, journal: Journal): EventStore {
  return {
    append: async (events) => journal.transaction((write) => write(events)),

    read: async (filter, after, limit) => {
      const statement = readFor(filter);
      return statement === null ? [] : connection.all(statement, readValues(filter, after, limit)).map(eventOf);
    },

    latest: async () => connection.get(latestSequence, {})?.seq ?? 0,

    subscribe: (listener) => journal.subscribe(listener),

    purge: async (before, limit) => connection.run(purgeEvents, { before, limit }),
  };
}
