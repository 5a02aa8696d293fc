import { pipeline } from 'node:stream/promises';
import { onAbort } from '../../ports/abort-signals.ts';
import type { Event } from '../../domain/event.ts';
import { nodeStreamOf } from '../shared/node-streams.ts';
import type { StreamedBody } from './operation.ts';
import type { RequestContext } from './request-context.ts';

/** After how many milliseconds a client reconnects. */
const retryMs = 1000;

export const eventStreamMedia = 'text/event-stream; charset=utf-8';

/** The interval of heartbeats in an idle stream, in milliseconds. */
export const defaultHeartbeatMs = 15_000;

/**
 * Yields the events as server-sent events. To continue, a client reconnects with the id of the last event that it received. `after`, the
 * id before the first event, is sent first, without data, so a client that received no event can also continue. Source: the HTML standard,
 * 9.2.
 */
export async function* serverSentEvents(
  after: number,
  batches: AsyncIterable<readonly Event[]>,
  present: (event: Event) => unknown,
): AsyncGenerator<string, void> {
  yield `id: ${after}\nretry: ${retryMs}\n\n`;
  for await (const batch of batches) {
    for (const event of batch) {
      // `JSON.stringify` returns one line: line breaks in strings are escaped.
      yield `id: ${event.sequence}\nevent: ${event.kind}\ndata: ${JSON.stringify(present(event))}\n\n`;
    }
  }
}

/**
 * Sends the parts of a stream as they arrive, and heartbeats between events. Fetches the next part after the client has read the last one,
 * so a slow client needs no memory. The write timeout of the server disconnects a client that reads nothing. When `ends` fires, an event
 * stream ends, and other streams are cut off. If this function throws, the caller must cut off the response, so an incomplete response is
 * not mistaken for a complete one. The status and the headers must be set before.
 */
export async function sendStream(context: RequestContext, { parts, ends }: StreamedBody): Promise<void> {
  const { http, request, response } = context;
  const isEvents = context.operation?.success.media === eventStreamMedia;
  // Closes the connection after the stream, so the next request of the client reaches a server that still accepts requests.
  response.shouldKeepAlive = false;
  response.setHeader('X-Accel-Buffering', 'no');
  if (request.method === 'HEAD') {
    await parts[Symbol.asyncIterator]().return?.();
    response.end();
    return;
  }
  // The client sees that the request is accepted, although there is no data yet.
  response.flushHeaders();
  const heartbeat = setInterval(() => {
    if (isEvents && response.writableLength === 0) response.write(':\n\n');
  }, http.options.heartbeatMs ?? defaultHeartbeatMs);
  try {
    const sent = pipeline(parts instanceof ReadableStream ? nodeStreamOf(parts) : parts, response);
    // Registered after the pipeline has started: `onAbort` can destroy the response at once, and a pipeline into a destroyed response never
    // settles.
    using _ = onAbort(ends, () => {
      if (response.writableLength > 0 || !isEvents) response.destroy();
    });
    await sent;
  } catch (error) {
    if (!ends.aborted) throw error;
    response.destroy();
  } finally {
    clearInterval(heartbeat);
  }
}
