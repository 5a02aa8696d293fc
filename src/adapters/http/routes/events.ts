import { z } from 'zod';
import type { EventsWanted } from '../../../application/events/events.ts';
import type { EventKind } from '../../../domain/event.ts';
import { serverSentEvents } from '../event-stream.ts';
import { noInput, operation, type StreamReply } from '../operation.ts';
import { encodePageToken, pageKeyOf } from '../page-token.ts';
import type { RequestContext } from '../request-context.ts';
import { conversationPath } from './conversations.ts';
import { eventPage, eventPageQuery, eventStreamHead, eventStreamHeaders, eventStreamQuery, presentEvent } from './event-schemas.ts';

const common = { ...noInput, tag: 'Events', needsKey: true, method: 'get' } as const;
const streamForm = {
  status: 200,
  description: 'Server-sent events: `id` is that of the event, `event` its kind, `data` an Event as JSON. It goes on until either side ends it.',
  schema: z.string(),
  media: 'text/event-stream; charset=utf-8',
  headers: eventStreamHead,
};

/** What the whole deployment tells unless other kinds are asked for: changes, rather than what is said. */
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
    description: 'From the beginning of its log unless `Last-Event-ID` or `after` say where to go on. It ends when the conversation is deleted.',
    params: conversationPath,
    query: eventStreamQuery,
    headers: eventStreamHeaders,
    success: streamForm,
    failures: ['conversation_not_found'],
    handle: async (context, { params, ...input }) => await follow(context, { conversationId: params.id, ...kindsOf(input.query.kinds) }, input, 0),
  }),
  operation({
    ...common,
    path: '/api/v1/events',
    operationId: 'list_events',
    summary: 'List what changed',
    description: 'Changes of your sandboxes and conversations, with their reason and who caused them; oldest first. Other kinds by `kinds`.',
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
    description: 'From now on unless `Last-Event-ID` or `after` say where to go on. Other kinds by `kinds`.',
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

/** Refuses before the answer begins, or answers with the parts of the stream. */
async function follow(context: RequestContext, wanted: EventsWanted, { query, headers }: StreamInput, otherwise: 0 | 'latest'): Promise<StreamReply> {
  const { http, skep, principal } = context;
  const asked = headers['Last-Event-ID'] ?? query.after ?? otherwise;
  const after = asked === 'latest' ? await skep.events.latest() : asked;
  const batches = skep.events.follow(principal.userId, wanted, after, AbortSignal.any([context.signal(), http.ending]));
  // The first batch is empty, and comes when the reader is let in.
  await batches.next();
  return { parts: serverSentEvents(after, batches), headers: { 'Last-Event-ID': String(after) } };
}
