import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Event } from '../../domain/event.ts';
import { LendingStream } from '../shared/lending-stream.ts';
import { nodeStreamOf } from '../shared/node-streams.ts';
import { raceSignal } from '../shared/timeout.ts';
import type { StreamedBody } from './operation.ts';
import type { RequestContext } from './request-context.ts';

/** How long a client waits before it reconnects, in milliseconds. */
const retryMs = 1000;

export const eventStreamMedia = 'text/event-stream; charset=utf-8';

/** The interval of heartbeats, in milliseconds. */
export const defaultHeartbeatMs = 15_000;

/**
 * Yields events as server-sent events. A client resumes with the id of the last event it saw. The id in `after`, of the event before the
 * first, is sent first and without data. So a client that is cut off before any event can resume too. Source: the HTML standard, 9.2.
 */
export async function* serverSentEvents(
  after: number,
  batches: AsyncIterable<readonly Event[]>,
  present: (event: Event) => unknown,
): AsyncGenerator<string, void> {
  yield `id: ${after}\nretry: ${retryMs}\n\n`;
  for await (const batch of batches) {
    for (const event of batch) {
      // JSON text has no raw line breaks, so one data line is enough.
      yield `id: ${event.sequence}\nevent: ${event.kind}\ndata: ${JSON.stringify(present(event))}\n\n`;
    }
  }
}

/**
 * Sends the parts of a stream as they come, and heartbeats in between. The next part is read when the last one is sent, so a slow client
 * uses no memory. The server's write timeout closes the connection of a client that reads nothing. When `ends` fires, an event stream ends,
 * or breaks off if data is unread; a byte stream always breaks off. If this throws, the caller destroys the connection, so the client does
 * not take it for a normal end. The caller sets status and headers before.
 */
export async function sendStream(context: RequestContext, { parts, ends }: StreamedBody): Promise<void> {
  const { http, request, response } = context;
  const isEvents = context.operation?.success.media === eventStreamMedia;
  // Closes the connection after the stream, so the client's next request can reach a server that is not shutting down.
  response.shouldKeepAlive = false;
  response.setHeader('X-Accel-Buffering', 'no');
  if (request.method === 'HEAD') {
    await parts[Symbol.asyncIterator]().return?.();
    response.end();
    return;
  }
  // Tells the client that it is admitted before there is any data.
  response.flushHeaders();
  const cutOff = (): void => {
    if (response.writableLength > 0 || !isEvents) response.destroy();
  };
  ends.addEventListener('abort', cutOff);
  const heartbeat = setInterval(() => {
    if (isEvents && response.writableLength === 0) response.write(':\n\n');
  }, http.options.heartbeatMs ?? defaultHeartbeatMs);
  try {
    const source = parts instanceof ReadableStream ? nodeStreamOf(parts) : null;
    if (source instanceof LendingStream) await relay(source, response, ends);
    else if (source !== null) await pipeline(source, response, { signal: ends });
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

/** Sends each chunk before the next one is read, because both use the same buffer. */
async function relay(source: LendingStream, response: ServerResponse, ends: AbortSignal): Promise<void> {
  for await (const chunk of source.lent()) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    response.write(chunk, (error) => (error ? reject(error) : resolve()));
    await raceSignal(promise, ends);
  }
  response.end();
}
