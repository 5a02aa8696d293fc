import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { EventsWanted } from '../../../application/events/events.ts';
import { Failure } from '../../../domain/failure.ts';
import { eventKinds, type Event, type EventData, type EventKind, statusChangeKinds } from '../../../domain/event.ts';
import { eventDataSchemas } from '../../shared/event-data-schemas.ts';
import { camelCase, inSnakeCase, type InSnakeCase, snakeCase } from '../../shared/snake-case.ts';
import { eventActor, list, presentStatus, resourceId, statusFields, timestamp, toTimestamp, wholeNumber } from '../common-schemas.ts';
import { operation, StreamedBody } from '../operation.ts';
import { pageQuery, pageSchema, readPage } from '../page-token.ts';
import type { RequestContext } from '../request-context.ts';
import { createSealedTokens } from '../sealed-tokens.ts';
import { eventStreamMedia, serverSentEvents } from '../send-stream.ts';

const eventFields = {
  id: z.int().describe('The position in the event log. Later events have greater ids.'),
  at: timestamp,
  conversation_id: z.string().nullable(),
  sandbox_id: z.string().nullable(),
  owner_id: z.string().describe('The user who owns the conversation or sandbox.'),
  actor: eventActor.describe('Who caused the event.'),
  user_id: z.string().nullable().describe(
    'The user whose request this is: the owner or an administrator. Null if it is no request, or only a later effect of one.',
  ),
  reason: statusFields.status_detail,
  status_reason: statusFields.status_reason,
};

const eventOf = (kind: EventKind) => {
  const id = camelCase(`_${kind}_event`);
  const data = schemaInSnakeCase(eventDataSchemas[kind]).meta({ id: `${id}Data` });
  return z.object({ ...eventFields, kind: z.literal(kind), data }).meta({ id });
};

const [firstKind, ...otherKinds] = eventKinds;

const eventResource = z
  .discriminatedUnion('kind', [eventOf(firstKind), ...otherKinds.map(eventOf)])
  .meta({ id: 'Event', description: 'Something that happened. The kind determines the form of the data.' });

const eventPage = pageSchema(eventResource, 'EventPage');

const kinds = list(z.array(z.enum(eventKinds).meta({ id: 'EventKind' })))
  .optional()
  .describe('Only events of these kinds. Repeat the parameter for each kind.');

const eventId = wholeNumber(0, 999_999_999_999_999);

const eventPageQuery = z.object({
  ...pageQuery,
  kinds,
  after: eventId.optional().describe('Begin after the event with this id. `page_id` overrides it.'),
});

const changesPageQuery = eventPageQuery.extend({
  sandbox_id__eq: resourceId.optional().describe('Only events of this sandbox itself. Those of its conversations are in their own logs.'),
});

export const ticketQuery = z.string().optional()
  .describe('A ticket instead of the key, for browsers: they cannot send the header with the key here.');

const startForm = 'must be the id of an event, or latest';

const eventStreamQuery = z.object({
  kinds,
  ticket: ticketQuery,
  // One type with a pattern, because many generators of clients fail at a parameter that has two types.
  after: z
    .string(startForm)
    .regex(/^(latest|[0-9]{1,15})$/, startForm)
    .transform((start) => (start === 'latest' ? start : Number(start)))
    .optional()
    .describe('Begin after the event with this id. `0`: the beginning of the log. `latest`: its end. `Last-Event-ID` overrides it.'),
});

const eventStreamHeaders = z.object({
  'Last-Event-ID': eventId.optional().describe('The id of the last event seen. Browsers send it when they reconnect.'),
});

/** An open stream continues after its ticket expires. The sealing secret is never stored, so access logs reveal no API key. */
const ticketLifeMs = 60_000;

const ticketResource = z
  .object({
    ticket: z.string().describe('Send it as the query parameter `ticket`.'),
    expires_at: timestamp,
  })
  .meta({ id: 'EventTicket', description: 'Replaces the key in the URL of a stream or WebSocket: browsers cannot send headers there.' });

/** The time at which it expires, and the credential. */
const tickets = createSealedTokens(randomBytes(32).toString('hex'), z.tuple([z.number(), z.string().nullable()]));

/** Returns the credential in a ticket. Throws `unauthorized` if the ticket is not valid or has expired. */
export function openTicket({ skep }: RequestContext, ticket: string): string {
  const [expiresAt, credential] = tickets.decode(ticket) ?? [0, null];
  if (credential === null || expiresAt <= skep.clock.now()) throw new Failure('unauthorized', {});
  return credential;
}

const eventStreamHead = z.object({
  'Last-Event-ID': z.int().describe('The id after which the stream begins. Reconnect with it if you have seen no event yet.'),
});

function presentEvent(event: Event): z.output<typeof eventResource> {
  const { status_detail: reason, status_reason } = presentStatus(event.reason);
  return {
    id: event.sequence,
    kind: event.kind,
    at: toTimestamp(event.at),
    conversation_id: event.conversationId,
    sandbox_id: event.sandboxId,
    owner_id: event.ownerId,
    actor: event.actor,
    user_id: event.userId,
    reason,
    status_reason,
    data: inSnakeCase(event.data),
  };
}

const streamForm = {
  status: 200,
  description: 'Server-sent events: `id` is the id of the event, `event` its kind, `data` an Event as JSON.',
  schema: z.string(),
  media: eventStreamMedia,
  headers: eventStreamHead,
};

export const eventOperations = [
  operation('get', '/api/v1/app-conversations/{id}/events', {
    tag: 'Events',
    operationId: 'list_app_conversation_events',
    summary: 'List the events of a conversation',
    description: 'Oldest first. Includes the events of its sandbox.',
    query: eventPageQuery,
    success: { status: 200, description: 'A page of events.', schema: eventPage },
    failures: ['conversation_not_found'],
    handle: async (context, { params, query }) =>
      await page(context, { conversationId: params.id, kinds: query.kinds }, `events/${params.id}`, query),
  }),
  operation('get', '/api/v1/app-conversations/{id}/events/stream', {
    tag: 'Events',
    operationId: 'stream_app_conversation_events',
    takesTicket: true,
    summary: 'Follow the events of a conversation',
    description: 'Begins with its first event, or after `Last-Event-ID` or `after`. The stream ends when the conversation is deleted.',
    query: eventStreamQuery,
    headers: eventStreamHeaders,
    success: streamForm,
    failures: ['conversation_not_found'],
    handle: async (context, { params, ...input }) =>
      await follow(context, { conversationId: params.id, kinds: input.query.kinds }, input, 0),
  }),
  operation('get', '/api/v1/events', {
    tag: 'Events',
    operationId: 'list_events',
    summary: 'List status changes',
    description: 'Status changes of your sandboxes and conversations, why and by whom. Oldest first. For other events, set `kinds`.',
    query: changesPageQuery,
    success: { status: 200, description: 'A page of events.', schema: eventPage },
    failures: [],
    handle: async (context, { query: { sandbox_id__eq: sandboxId, ...query } }) =>
      await page(context, { sandboxId, kinds: query.kinds ?? statusChangeKinds }, 'events', query),
  }),
  operation('get', '/api/v1/events/ticket', {
    tag: 'Events',
    operationId: 'get_event_ticket',
    summary: 'Get a ticket for an event stream, or for attaching to an execution',
    success: { status: 200, description: 'The ticket.', schema: ticketResource },
    failures: [],
    handle: ({ skep, credential }) => {
      const expiresAt = skep.clock.now() + ticketLifeMs;
      const ticket = tickets.encode([expiresAt, credential]);
      return { ticket, expires_at: toTimestamp(expiresAt) };
    },
  }),
  operation('get', '/api/v1/events/stream', {
    tag: 'Events',
    operationId: 'stream_events',
    takesTicket: true,
    summary: 'Follow status changes',
    description: 'From now on, or after `Last-Event-ID` or `after`. For other events, set `kinds`.',
    query: eventStreamQuery,
    headers: eventStreamHeaders,
    success: streamForm,
    failures: [],
    handle: async (context, input) => await follow(context, { kinds: input.query.kinds ?? statusChangeKinds }, input, 'latest'),
  }),
];

async function page(context: RequestContext, wanted: EventsWanted, listing: string, query: z.output<typeof eventPageQuery>) {
  const { skep, principal } = context;
  return await readPage(context, listing, query, async ({ after, limit }) => {
    const { items, next } = await skep.events.page(principal, wanted, after?.value ?? query.after ?? 0, limit);
    return { items, next: next === null ? null : { value: next, id: '' } };
  }, presentEvent);
}

/** Returns the stream. Throws the failures of the use case before the response begins. */
async function follow(
  context: RequestContext,
  wanted: EventsWanted,
  { query, headers }: { readonly query: z.output<typeof eventStreamQuery>; readonly headers: z.output<typeof eventStreamHeaders> },
  otherwise: 0 | 'latest',
): Promise<StreamedBody> {
  const { skep, principal } = context;
  const asked = headers['Last-Event-ID'] ?? query.after ?? otherwise;
  const after = asked === 'latest' ? await skep.events.latest() : asked;
  const ends = context.openStream();
  const batches = skep.events.follow(principal, wanted, after, ends);
  // The first batch is empty. It arrives when the reader is admitted.
  await batches.next();
  context.response.set('Last-Event-ID', String(after));
  return new StreamedBody(serverSentEvents(after, batches, presentEvent), ends);
}

/** Returns the schema for the result of {@link inSnakeCase}. */
function schemaInSnakeCase(schema: z.ZodType<EventData[EventKind]>): z.ZodType<InSnakeCase<EventData[EventKind]>> {
  const renamed = (inner: z.core.$ZodType): z.core.$ZodType => {
    if (inner instanceof z.ZodObject) {
      const fields = Object.entries(inner.shape).map(([name, field]) => [snakeCase(name), renamed(field)] as const);
      return z.object(Object.fromEntries(fields)).meta(inner.meta() ?? {});
    }
    if (inner instanceof z.ZodDiscriminatedUnion) return inner.clone({ ...inner.def, options: inner.options.map(renamed) });
    if (inner instanceof z.ZodArray) return z.array(renamed(inner.element));
    return inner instanceof z.ZodNullable ? z.nullable(renamed(inner.unwrap())) : inner;
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type says the same as the code above
  return renamed(schema) as z.ZodType<InSnakeCase<EventData[EventKind]>>;
}
