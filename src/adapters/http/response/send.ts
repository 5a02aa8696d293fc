import type { Exchange } from '../exchange.ts';
import type { Answer } from './answer.ts';
import { securityHeaders } from './security-headers.ts';

/** Sends the answer, unless the client is gone; answers with whether it was there. */
export function send(exchange: Exchange, { status, body, media, headers }: Answer): boolean {
  const { response } = exchange;
  if (response.destroyed || response.headersSent) return false;
  writeHead(exchange, status, headers);
  if (body === null) {
    response.end();
  } else {
    response.setHeader('Content-Type', media);
    response.setHeader('Content-Length', Buffer.byteLength(body));
    response.end(body);
  }
  return true;
}

/** Sets the status and the headers, those of every answer included. */
export function writeHead({ response, requestId }: Exchange, status: number, headers: Readonly<Record<string, string>>): void {
  // Set by the application that the router is mounted in, where it is.
  response.removeHeader('X-Powered-By');
  response.statusCode = status;
  for (const [name, value] of securityHeaders) response.setHeader(name, value);
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('X-Request-Id', requestId);
  for (const name in headers) response.setHeader(name, headers[name] ?? '');
}
