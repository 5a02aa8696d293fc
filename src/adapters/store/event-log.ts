import type { EventDraft } from '../../domain/event.ts';
import type { WrittenEvents } from '../../ports/event-store.ts';
import type { Db } from './database.ts';
import { rowOf } from './record-rows.ts';

type WriteEvents = (events: readonly EventDraft[]) => Promise<void>;
type Listener = (written: WrittenEvents) => void;

/** Writes events in the transaction of the records that they are about. */
export interface EventLog {
  /** Runs a transaction that may write events, and wakes the subscribers after its commit. */
  transaction<T>(work: (trx: Db, writeEvents: WriteEvents) => Promise<T>): Promise<T>;
  /** Returns the function that ends the subscription. */
  subscribe(listener: Listener): () => void;
}

export function createEventLog(db: Db): EventLog {
  const subscriptions = new Set<{ readonly listener: Listener }>();

  return {
    async transaction(work) {
      const written: EventDraft[] = [];
      const result = await db.transaction().execute((trx) =>
        work(trx, async (events) => {
          for (const event of events) await trx.insertInto('events').values(rowOf(event)).executeTakeFirst();
          written.push(...events);
        }),
      );
      if (written.length > 0) wake(subscriptions, written);
      return result;
    },
    subscribe(listener) {
      // The same function may be subscribed twice; each subscription ends on its own.
      const subscription = { listener };
      subscriptions.add(subscription);
      return () => void subscriptions.delete(subscription);
    },
  };
}

/** Calls those that were subscribed when the events were written, and still are. A listener that throws is a process warning. */
function wake(subscriptions: ReadonlySet<{ readonly listener: Listener }>, events: readonly EventDraft[]): void {
  const written = {
    ownerIds: new Set(events.map(({ ownerId }) => ownerId)),
    conversationIds: new Set(events.flatMap(({ conversationId }) => conversationId ?? [])),
    sandboxIds: new Set(events.flatMap(({ sandboxId }) => sandboxId ?? [])),
  };
  for (const subscription of Array.from(subscriptions)) {
    if (!subscriptions.has(subscription)) continue;
    try {
      subscription.listener(written);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : new Error(String(error)));
    }
  }
}
