import type { z } from 'zod';
import { type Event, type EventDraft, eventKinds } from '../../../domain/event.ts';
import { parseColumn, wordOf } from './columns.ts';
import { eventActors, EventDataColumns } from './event-schema.ts';
import type { EventDraftRow } from './tables.ts';

export function rowOfEvent(event: EventDraft): EventDraftRow {
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

export const eventColumns = [
  'kind',
  'at',
  'owner_id',
  'conversation_id',
  'sandbox_id',
  'actor',
  'reason',
  'data',
] as const satisfies readonly (keyof EventDraftRow)[];

export function eventOf(row: EventDraftRow & { readonly sequence: number }): Event {
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
