import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { partsOf } from './byte-stream.ts';
import type { Connection } from './connection.ts';
import { isFailure, connectionLost } from './failures.ts';
import type { Event } from './openapi.ts';
import { type FollowOptions, Reconnection } from './reconnection.ts';

export interface EventOptions extends FollowOptions {
  /** Only events of this conversation and its sandbox. Default: changes in everything that the key can see. */
  readonly conversation?: string | undefined;
  /** Only events of these kinds. */
  readonly kinds?: readonly Event['kind'][] | undefined;
  /** Start after the event with this id. Default: the beginning of a conversation's log; without a conversation, now. */
  readonly after?: number | 'latest' | undefined;
}

/**
 * Yields events in order. Reconnects after a lost connection and continues after the last event. Ends with the conversation. Throws a
 * `SkepError` if the server refuses, or the signal's reason.
 */
export async function* followEvents(connection: Connection, options: EventOptions): AsyncGenerator<Event, void> {
  const reconnection = new Reconnection(connection, options);
  let last: number | null = null;
  for (;;) {
    let error: unknown = connectionLost();
    try {
      const { response, startsAfter } = await openEvents(connection, options, last);
      reconnection.succeeded();
      last ??= startsAfter;
      for await (const { data } of messagesOf(response)) {
        const event = JSON.parse(data) as Event;
        if (last !== null && event.id <= last) continue;
        last = event.id;
        yield event;
        if (event.kind === 'conversation_deleted' && options.conversation !== undefined) return;
      }
    } catch (caught) {
      if (last !== null && isFailure(caught, 'conversation_not_found')) return;
      error = caught;
    }
    await reconnection.wait(error);
  }
}

/** Returns the id of the newest event of a conversation, or of everything if `id` is null, so a stream can start after it. */
export async function latestEventId(connection: Pick<Connection, 'stream'>, id: string | null, signal?: AbortSignal): Promise<number> {
  const input = { query: { after: 'latest' }, signal };
  const { headers, body } = id === null
    ? await connection.stream('GET /api/v1/events/stream', input)
    : await connection.stream('GET /api/v1/app-conversations/{id}/events/stream', { path: { id }, ...input });
  await body?.cancel();
  return Number(headers.get('Last-Event-ID'));
}

/** Returns the response, and the id of the event before the first one, which is null if the server does not send it. */
async function openEvents(
  connection: Connection, { conversation, kinds, after, signal }: EventOptions, last: number | null,
): Promise<{ readonly response: Response; readonly startsAfter: number | null }> {
  const input = { query: { kinds, after: (last ?? after)?.toString() }, signal };
  const response = conversation === undefined
    ? await connection.open('GET /api/v1/events/stream', input)
    : await connection.open('GET /api/v1/app-conversations/{id}/events/stream', { path: { id: conversation }, ...input });
  const header = response.headers.get('Last-Event-ID');
  return { response, startsAfter: header === null ? null : Number(header) };
}

async function* messagesOf(response: Response): AsyncGenerator<EventSourceMessage, void> {
  const decoder = new TextDecoder();
  const messages: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (message) => messages.push(message) });
  for await (const part of partsOf(response.body)) {
    parser.feed(decoder.decode(part, { stream: true }));
    yield* messages.splice(0);
  }
}
