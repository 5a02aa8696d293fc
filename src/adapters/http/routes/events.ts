import { z } from 'zod';
import type { EventsWanted } from '../../../application/events/events.ts';
import { eventKinds, type Event, type EventData, type EventKind } from '../../../domain/event.ts';
import { eventActors, eventDataSchemas } from '../../shared/event-data.ts';
import { inSnakeCase, type InSnakeCase, snakeCase } from '../../shared/snake-case.ts';
import { presentReason, sentenceOrNull, statusReason, timestamp, toTimestamp } from '../common-schemas.ts';
import { serverSentEvents } from '../event-stream.ts';
import { noInput, operation, type StreamReply } from '../operation.ts';
import { encodePageToken, pageKeyOf, pageQuery, pageSchema } from '../page-token.ts';
import type { RequestContext } from '../request-context.ts';
import { conversationPath } from './conversations.ts';

const data = eventKinds.map((kind) => {
  const id = `_${kind}_event_data`.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return schemaInSnakeCase(eventDataSchemas[kind]).meta({ id });
});

const eventResource = z
  .object({
    id: z.int().meta({ description: 'Its place in the log: later events have greater ones.' }),
    kind: z.enum(eventKinds),
    at: timestamp,
    conversation_id: z.string().nullable(),
    sandbox_id: z.string().nullable(),
    actor: z.enum(eventActors).meta({
      description: 'Who caused it: a caller, the agent, a rule or repair of the deployment, or what its runtime found.',
    }),
    reason: z.string().nullable().meta({ description: 'Why, as a sentence.' }),
    status_reason: statusReason.nullable(),
    data: z.union(data).meta({ description: 'The data of the event; the kind decides which form it has.' }),
  })
  .meta({ id: 'Event', description: 'Something that was said or done.' });

const eventPage = pageSchema(eventResource, 'EventPage');

const kinds = z.array(z.enum(eventKinds)).optional().meta({ description: 'Only these kinds; repeat the parameter for each.' });

const eventId = z.string().regex(/^\d{1,15}$/, 'must be the id of an event').transform(Number);

const eventPageQuery = z.object({
  ...pageQuery,
  kinds,
  after: eventId
    .optional()
    .meta({ description: 'Begin after the event of this id; `page_id` goes before it.', override: { type: 'string' } }),
});

const eventStreamQuery = z.object({
  kinds,
  after: z
    .union([eventId, z.literal('latest')], { error: 'must be the id of an event, or latest' })
    .optional()
    .meta({
      description: 'Begin after the event of this id; `0` is the beginning of the log, `latest` its end. `Last-Event-ID` goes before it.',
      override: { type: 'string' },
    }),
});

const eventStreamHeaders = z.object({
  'Last-Event-ID': eventId
    .optional()
    .meta({ description: 'The id of the last event seen; browsers send it when they connect again.', override: { type: 'string' } }),
});

/** What the head of a stream says of it. */
const eventStreamHead = z.object({
  'Last-Event-ID': z.int().meta({ description: 'The id that the stream begins after, to go on from there if no event was seen.' }),
});

function presentEvent(event: Event): z.output<typeof eventResource> {
  return {
    id: event.sequence,
    kind: event.kind,
    at: toTimestamp(event.at),
    conversation_id: event.conversationId,
    sandbox_id: event.sandboxId,
    actor: event.actor,
    reason: sentenceOrNull(event.reason),
    status_reason: presentReason(event.reason),
    data: inSnakeCase(event.data),
  };
}

const common = { ...noInput, tag: 'Events', needsKey: true, method: 'get' } as const;
const streamForm = {
  status: 200,
  description: 'Server-sent events: `id` is the id of the event, `event` its kind, `data` an Event as JSON. Either side ends it.',
  schema: z.string(),
  media: 'text/event-stream; charset=utf-8',
  headers: eventStreamHead,
};

/** The kinds in the events of the whole deployment, unless a request asks for others: changes, and no messages. */
const changes: readonly EventKind[] = ['sandbox_moved', 'start_step', 'execution_changed', 'conversation_deleted'];

type PageQuery = z.output<typeof eventPageQuery>;
type StreamInput = { readonly query: z.output<typeof eventStreamQuery>; readonly headers: z.output<typeof eventStreamHeaders> };

export const eventOperations = [
  operation({
    ...common,
    path: '/api/v1/app-conversations/{id}/events',
    operationId: 'list_app_conversation_events',
    summary: 'List the events of a conversation',
    description: 'Oldest first, those of its sandbox included.',
    params: conversationPath,
    query: eventPageQuery,
    success: { status: 200, description: 'A page of events.', schema: eventPage },
    failures: ['conversation_not_found'],
    handle: async (context, { params, query }) => ({
      value: await page(context, { conversationId: params.id, ...kindsOf(query.kinds) }, `events/${params.id}`, query),
    }),
  }),
  operation({
    ...common,
    path: '/api/v1/app-conversations/{id}/events/stream',
    operationId: 'stream_app_conversation_events',
    summary: 'Follow the events of a conversation',
    description: 'From the beginning of its log, or after `Last-Event-ID` or `after`. The stream ends when the conversation is deleted.',
    params: conversationPath,
    query: eventStreamQuery,
    headers: eventStreamHeaders,
    success: streamForm,
    failures: ['conversation_not_found'],
    handle: async (context, { params, ...input }) =>
      await follow(context, { conversationId: params.id, ...kindsOf(input.query.kinds) }, input, 0),
  }),
  operation({
    ...common,
    path: '/api/v1/events',
    operationId: 'list_events',
    summary: 'List what changed',
    description: 'Changes of your sandboxes and conversations, why and by whom, oldest first. `kinds` asks for other kinds.',
    query: eventPageQuery,
    success: { status: 200, description: 'A page of events.', schema: eventPage },
    failures: [],
    handle: async (context, { query }) => ({ value: await page(context, { kinds: query.kinds ?? changes }, 'events', query) }),
  }),
  operation({
    ...common,
    path: '/api/v1/events/stream',
    operationId: 'stream_events',
    summary: 'Follow what changes',
    description: 'From now on, or after `Last-Event-ID` or `after`. `kinds` asks for other kinds.',
    query: eventStreamQuery,
    headers: eventStreamHeaders,
    success: streamForm,
    failures: [],
    handle: async (context, input) => await follow(context, { kinds: input.query.kinds ?? changes }, input, 'latest'),
  }),
];

function kindsOf(kinds: readonly EventKind[] | undefined): Pick<EventsWanted, 'kinds'> {
  return kinds === undefined ? {} : { kinds };
}

async function page({ skep, principal }: RequestContext, wanted: EventsWanted, listing: string, query: PageQuery) {
  const from = pageKeyOf(listing, query)?.value ?? query.after ?? 0;
  const { items, next } = await skep.events.page(principal.userId, wanted, from, query.limit);
  return { items: items.map(presentEvent), next_page_id: next === null ? null : encodePageToken(listing, { value: next, id: 'event' }) };
}

/** Returns the parts of the stream. Throws, before the answer begins, what the use case throws. */
async function follow(
  context: RequestContext,
  wanted: EventsWanted,
  { query, headers }: StreamInput,
  otherwise: 0 | 'latest',
): Promise<StreamReply> {
  const { http, skep, principal } = context;
  const asked = headers['Last-Event-ID'] ?? query.after ?? otherwise;
  const after = asked === 'latest' ? await skep.events.latest() : asked;
  const batches = skep.events.follow(principal.userId, wanted, after, AbortSignal.any([context.signal(), http.ending]));
  // The first batch is empty, and comes when the reader is let in.
  await batches.next();
  return { parts: serverSentEvents(after, batches, presentEvent), headers: { 'Last-Event-ID': String(after) } };
}

/** The schema of what {@link inSnakeCase} returns for a value of the schema. */
function schemaInSnakeCase(schema: z.ZodType<EventData[EventKind]>): z.ZodType<InSnakeCase<EventData[EventKind]>> {
  const renamed = (inner: z.core.$ZodType): z.core.$ZodType => {
    if (inner instanceof z.ZodObject) {
      return z.object(Object.fromEntries(Object.entries(inner.shape).map(([name, field]) => [snakeCase(name), renamed(field)])));
    }
    if (inner instanceof z.ZodDiscriminatedUnion) return inner.clone({ ...inner.def, options: inner.options.map(renamed) });
    if (inner instanceof z.ZodArray) return z.array(renamed(inner.element));
    return inner instanceof z.ZodNullable ? z.nullable(renamed(inner.unwrap())) : inner;
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type says the same as the code above
  return renamed(schema) as z.ZodType<InSnakeCase<EventData[EventKind]>>;
}
