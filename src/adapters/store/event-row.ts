import type { Selectable } from 'kysely';
import type { z } from 'zod';
import { type Event, type EventDraft, eventKinds } from '../../domain/event.ts';
import type { Database, EventRow } from './database.ts';
import { eventActors, EventDataColumns, parseColumn, wordOf } from './json-columns.ts';

export function rowOfEvent(event: EventDraft): EventRow {
  return {
    kind: event.kind,
    at: event.at,
    owner_id: event.ownerId,
    conversation_id: event.conversationId,
    sandbox_id: event.sandboxId,
    actor: event.actor,
    reason: event.reason,
    data: JSON.stringify(event.data),
  };
}

export function eventOf(row: Selectable<Database['events']>): Event {
  const kind = wordOf(eventKinds, row.kind);
  const column: z.ZodType = EventDataColumns[kind];
  const event = {
    sequence: row.sequence,
    kind,
    at: row.at,
    ownerId: row.owner_id,
    conversationId: row.conversation_id,
    sandboxId: row.sandbox_id,
    actor: wordOf(eventActors, row.actor),
    reason: row.reason,
    data: parseColumn(column, row.data),
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the data was read by the schema of its own kind
  return event as Event;
}
