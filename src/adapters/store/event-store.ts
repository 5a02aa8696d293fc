import { type Selectable, sql } from 'kysely';
import { type Event, eventActors, type EventDraft, type EventKind, eventKinds } from '../../domain/event.ts';
import type { EventFilter, EventStore, WrittenEvents } from '../../ports/event-store.ts';
import { eventDataSchemas } from '../shared/event-data-schemas.ts';
import { Listeners } from '../shared/listeners.ts';
import type { Database, Db } from './database.ts';
import { enumReader, json, rowOf, rowReader, withoutIndex } from './record-rows.ts';

const readKind = enumReader(eventKinds);

const eventOf = rowReader<Event, Selectable<Database['events']>>({
  kind: readKind,
  actor: enumReader(eventActors),
  reason: json,
  // The form of the data depends on another column, and clients get it as the HTTP interface documents it.
  data: (text, { kind }) => eventDataSchemas[readKind(kind)].parse(json(text)),
});

type WriteEvents = (events: readonly EventDraft[]) => Promise<number>;

/** Also writes events in the transaction of their records. */
export interface EventLog extends EventStore {
  /** Runs a transaction that may write events, and notifies the subscribers after its commit. */
  transaction<T>(work: (trx: Db, writeEvents: WriteEvents) => Promise<T>): Promise<T>;
}

export function createEventLog(db: Db): EventLog {
  const listeners = new Listeners<WrittenEvents>();

  const transaction: EventLog['transaction'] = async (work) => {
    const written: EventDraft[] = [];
    const result = await db.transaction().execute((trx) =>
      work(trx, async (events) => {
        if (events.length === 0) return 0;
        const { insertId = 0n } = await trx.insertInto('events').values(events.map(rowOf)).executeTakeFirstOrThrow();
        written.push(...events);
        return Number(insertId);
      }),
    );
    if (written.length > 0) listeners.notify(summaryOf(written));
    return result;
  };

  return {
    transaction,

    append: createAppend(transaction),

    read: async (filter, after, limit) => {
      const [first, ...others] = rangesOf(db, filter, after);
      if (first === undefined) return [];
      const query = others.reduce((merged, other) => merged.unionAll(other), first);
      return (await query.orderBy('sequence').limit(limit).execute()).map(eventOf);
    },

    // SQLite stores the highest number that AUTOINCREMENT gave. It stays after the event is purged.
    latest: async () => {
      const { rows } = await sql<{ seq: number }>`SELECT seq FROM sqlite_sequence WHERE name = 'events'`.execute(db);
      return rows[0]?.seq ?? 0;
    },

    subscribe: (listener) => listeners.add(listener),

    purge: async (before, limit) => {
      const { numDeletedRows } = await db
        .deleteFrom('events')
        .where('sequence', 'in', (eb) => {
          const working = eb.selectFrom('conversations').select('id').whereRef('id', '=', 'conversation_id').where('turn', 'is not', null);
          const old = eb.selectFrom('events').select('sequence').where('at', '<', before);
          return old.where((event) => event.not(event.exists(working))).orderBy('at').orderBy('sequence').limit(limit);
        })
        .executeTakeFirstOrThrow();
      return Number(numDeletedRows);
    },
  };
}

interface SharedTransaction {
  readonly appends: (readonly EventDraft[])[];
  readonly lasts: Promise<readonly number[]>;
  /** True if it was undone because one of several appends failed. */
  mustSplit: boolean;
}

/** Appends that wait for the connection share one transaction: each commit waits for the disk. */
function createAppend(transaction: EventLog['transaction']): EventStore['append'] {
  let waiting: SharedTransaction | null = null;

  function begin(): SharedTransaction {
    const appends: SharedTransaction['appends'] = [];
    const close = (): void => {
      if (waiting === shared) waiting = null;
    };
    const lasts = transaction(async (_, writeEvents) => {
      close();
      try {
        const written: number[] = [];
        for (const events of appends) written.push(await writeEvents(events));
        return written;
      } catch (error) {
        shared.mustSplit = appends.length > 1;
        throw error;
      }
    }).finally(close);
    const shared: SharedTransaction = { appends, lasts, mustSplit: false };
    return shared;
  }

  return async (events) => {
    const shared = (waiting ??= begin());
    const index = shared.appends.push(events) - 1;
    try {
      return (await shared.lasts)[index] ?? 0;
    } catch (error) {
      if (!shared.mustSplit) throw error;
      return await transaction((_, writeEvents) => writeEvents(events));
    }
  };
}

/**
 * Returns one query for each place and kind in the filter. Each reads one range of an index in the order of the log, so the database merges
 * them and reads no other event. The caller must combine them into one statement: then no event that is written meanwhile is skipped.
 */
function rangesOf(db: Db, { ownerId, conversationId, sandboxId, kinds }: EventFilter, after: number) {
  const later = db.selectFrom('events').selectAll().where('sequence', '>', after);
  const all = ownerId === null ? later : later.where('owner_id', '=', ownerId);
  const places = [
    ...(conversationId === undefined ? [] : [all.where('conversation_id', '=', conversationId)]),
    ...(sandboxId === undefined ? [] : [all.where('sandbox_id', '=', sandboxId).where('conversation_id', 'is', null)]),
  ];
  const wanted = places.length === 0 ? [all] : places;
  if (kinds === undefined) return wanted;
  // A place of any owner has no index with kinds, and fewer events than a kind.
  const column = ownerId === null && places.length > 0 ? withoutIndex<EventKind>('kind') : 'kind';
  // Removes repeated kinds: two ranges must not contain the same event.
  return wanted.flatMap((place) => Array.from(new Set(kinds), (kind) => place.where(column, '=', kind)));
}

function summaryOf(events: readonly EventDraft[]): WrittenEvents {
  return {
    kinds: new Set(events.map(({ kind }) => kind)),
    ownerIds: new Set(events.map(({ ownerId }) => ownerId)),
    conversationIds: new Set(events.flatMap(({ conversationId }) => conversationId ?? [])),
    sandboxIds: new Set(events.flatMap(({ conversationId, sandboxId }) => (conversationId === null ? (sandboxId ?? []) : []))),
  };
}
