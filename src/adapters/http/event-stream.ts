import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import type { Event } from '../../domain/event.ts';
import { nodeStreamOf } from '../shared/node-streams.ts';
import type { StreamedBody } from './operation.ts';
import type { RequestContext } from './request-context.ts';

/** How soon a client that lost the stream asks for it again, in milliseconds. */
const retryMs = 1000;

export const eventStreamMedia = 'text/event-stream; charset=utf-8';

/** How often a stream shows that it lives, in milliseconds. */
export const defaultHeartbeatMs = 15_000;

/**
 * Events as server-sent events. A client asks for the rest by the id of the last one that it saw. `after` is the id of the event before
 * the first: it is sent first, without data, so that a client that is cut off before it saw any event goes on from there too. Source:
 * the HTML standard, 9.2.
 */
export async function* serverSentEvents(
  after: number,
  batches: AsyncIterable<readonly Event[]>,
  present: (event: Event) => unknown,
): AsyncGenerator<string, void> {
  yield `id: ${after}\nretry: ${retryMs}\n\n`;
  for await (const batch of batches) {
    for (const event of batch) {
      // JSON has no line breaks outside of its strings, and none unescaped in them: one line of data holds it.
      yield `id: ${event.sequence}\nevent: ${event.kind}\ndata: ${JSON.stringify(present(event))}\n\n`;
    }
  }
}

/**
 * Sends the parts of a stream as they come, and a heartbeat while none comes. A client is sent no more than it reads: the next part is
 * fetched when the last one is on its way, so a slow client costs no memory. The server's write timeout cuts off one that reads nothing.
 * When `ends` fires, no further part is sent: events end, or break off if something is left unread, and bytes break off. If it throws, the
 * caller breaks the connection off, so that the client does not take it for the end. The status and the headers are set before.
 */
export async function sendStream(context: RequestContext, { parts, ends }: StreamedBody): Promise<void> {
  const { http, request, response } = context;
  const isEvents = context.operation?.success.media === eventStreamMedia;
  // The connection ends with the stream, so that the client's next request reaches a server that still takes requests.
  response.shouldKeepAlive = false;
  response.setHeader('X-Accel-Buffering', 'no');
  if (request.method === 'HEAD') {
    await parts[Symbol.asyncIterator]().return?.();
    response.end();
    return;
  }
  // A follower sees that it is let in, although nothing is written yet.
  response.flushHeaders();
  const cutOff = (): void => {
    if (response.writableLength > 0 || !isEvents) response.destroy();
  };
  ends.addEventListener('abort', cutOff);
  const heartbeat = setInterval(() => {
    if (isEvents && response.writableLength === 0) response.write(':\n\n');
  }, http.options.heartbeatMs ?? defaultHeartbeatMs);
  try {
    if (parts instanceof ReadableStream) await pipeline(nodeStreamOf(parts), response, { signal: ends });
    else {
      for await (const part of parts) {
        if (ends.aborted) break;
        if (!response.write(part)) await once(response, 'drain', { signal: ends });
      }
      response.end();
    }
  } catch (error) {
    if (!ends.aborted) throw error;
    response.destroy();
  } finally {
    clearInterval(heartbeat);
    ends.removeEventListener('abort', cutOff);
  }
}
