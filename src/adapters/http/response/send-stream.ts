import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Exchange } from '../exchange.ts';
import type { StreamAnswer } from './answer.ts';
import { writeHead } from './send.ts';

/**
 * Sends the parts of an answer as they come, and a sign of life where none comes. A client is sent no more than it reads:
 * the next part is not fetched before the last one is on its way, so a slow one costs no memory; the server's write timeout
 * cuts off one that reads nothing. Answers with whether it was sent to its end. What breaks on the way breaks the connection
 * off, so that the client does not take it for the end; so does the server's end where something is left unread.
 */
export async function sendStream(exchange: Exchange, { status, media, headers, parts }: StreamAnswer): Promise<boolean> {
  const { request, response, deployment, ending } = exchange;
  if (response.destroyed || response.headersSent) return false;
  // The connection ends with the stream, so that who asks again asks a server that still takes requests.
  response.shouldKeepAlive = false;
  writeHead(exchange, status, { ...headers, 'Content-Type': media, 'X-Accel-Buffering': 'no' });
  if (request.method === 'HEAD') {
    response.end();
    return true;
  }
  const cutOff = (): void => {
    if (response.writableLength > 0) response.destroy();
  };
  ending.addEventListener('abort', cutOff);
  const signs = setInterval(() => {
    if (response.writableLength === 0) response.write(':\n\n');
  }, deployment.settings.heartbeatMs);
  try {
    for await (const part of parts) {
      if (response.destroyed) return false;
      if (!response.write(part)) await drained(response);
    }
    if (response.destroyed) return false;
    response.end();
    return true;
  } catch (error) {
    response.destroy();
    throw error;
  } finally {
    clearInterval(signs);
    ending.removeEventListener('abort', cutOff);
  }
}

/** Answers when there is room again, or nobody to send to. */
async function drained(response: ServerResponse): Promise<void> {
  if (response.destroyed) return;
  const left = new AbortController();
  try {
    await Promise.race([once(response, 'drain', { signal: left.signal }), once(response, 'close', { signal: left.signal })]);
  } finally {
    left.abort();
  }
}
