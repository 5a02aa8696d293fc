import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Event } from '../../domain/event.ts';
import type { RequestContext } from './request-context.ts';

/** How soon a client that lost the stream asks for it again, in milliseconds. */
const retryMs = 1000;

/** Characters that are written at a time: few writes for many events, and little that a slow client holds. */
const partLength = 65_536;

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
    let part = '';
    for (const event of batch) {
      // JSON has no line breaks outside of its strings, and none unescaped in them: one line of data holds it.
      part += `id: ${event.sequence}\nevent: ${event.kind}\ndata: ${JSON.stringify(present(event))}\n\n`;
      if (part.length < partLength) continue;
      yield part;
      part = '';
    }
    if (part !== '') yield part;
  }
}

/**
 * Sends the parts of a stream as they come, and a heartbeat while none comes. A client is sent no more than it reads: the next part is
 * fetched when the last one is on its way, so a slow client costs no memory. The server's write timeout cuts off one that reads nothing.
 * An error on the way breaks the connection off, so that the client does not take it for the end; so does the end of the server if
 * something is left unread. The status and the headers are set before.
 */
export async function sendStream({ http, request, response }: RequestContext, parts: AsyncIterable<string>): Promise<void> {
  if (response.destroyed) return;
  // The connection ends with the stream, so that the client's next request reaches a server that still takes requests.
  response.shouldKeepAlive = false;
  response.setHeader('X-Accel-Buffering', 'no');
  if (request.method === 'HEAD') {
    response.end();
    return;
  }
  const cutOff = (): void => {
    if (response.writableLength > 0) response.destroy();
  };
  http.ending.addEventListener('abort', cutOff);
  const heartbeat = setInterval(() => {
    if (response.writableLength === 0) response.write(':\n\n');
  }, http.settings.heartbeatMs);
  try {
    for await (const part of parts) {
      if (response.destroyed) return;
      if (!response.write(part)) await drained(response);
    }
    response.end();
  } finally {
    clearInterval(heartbeat);
    http.ending.removeEventListener('abort', cutOff);
  }
}

/** Resolves when there is room again, or the connection is closed. */
async function drained(response: ServerResponse): Promise<void> {
  if (response.destroyed) return;
  const decided = new AbortController();
  try {
    await Promise.race([once(response, 'drain', { signal: decided.signal }), once(response, 'close', { signal: decided.signal })]);
  } finally {
    decided.abort();
  }
}
