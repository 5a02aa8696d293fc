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
 * Events as server-sent events. A client continues from the id of the last message that it got. So the first message has the id `after`,
 * that of the event before the first, and no data: a client that loses the connection before any event continues from there. Source: the
 * HTML standard, 9.2.
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
 * Sends the parts of a stream as they come, and a heartbeat while none comes. The next part is read only when the last one was sent, so
 * a slow client costs no memory. The server's write timeout disconnects a client that reads nothing. When `ends` fires, no further part is
 * sent. Events then end regularly, except if the client has not read all; other streams break off. If this function throws, the caller
 * closes the connection, so that the client sees an error instead of an end. The status and the headers are set before.
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
  // So that the client knows that the request is accepted, even if there is nothing to send yet.
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
