import { once } from 'node:events';
import { createServer, request as forward } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

/**
 * The result of a request: the host's own answer, only this status, the status 429 with the header `Retry-After`, or no answer (`stall`).
 * With `lose`, the host handles the request, but the connection breaks before the answer.
 */
export type HostBehaviour = 'answer' | 'stall' | 'lose' | number | { readonly retryAfterSeconds: number };

/**
 * Called for each request. The answer waits for the result. If it throws, the connection breaks, and the suite reports its error as the
 * cause of the failed case.
 */
export type Interceptor = () => HostBehaviour | Promise<HostBehaviour>;

/** A proxy on the loopback interface between a provider and its host, or the host's double. It can simulate faults. */
export interface HostProxy {
  /** The host's URL, with the proxy's origin. */
  readonly url: string;
  readonly intercept: (interceptor: Interceptor | null) => void;
  readonly close: () => Promise<void>;
}

/** Starts a proxy for an `http:` URL. Replaces the host's origin in headers and bodies with the proxy's origin. */
export async function startHostProxy(hostUrl: string): Promise<HostProxy> {
  const host = new URL(hostUrl);
  let interceptor: Interceptor | null = null;
  const server = createServer((request, response) => {
    // A client may close the connection early.
    response.on('error', () => undefined);
    answer(request, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${portOf(server)}`;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await buffer(request);
    const behaviour = interceptor === null ? 'answer' : await interceptor();
    if (behaviour === 'stall') return;
    if (typeof behaviour === 'number' || typeof behaviour === 'object') {
      if (typeof behaviour === 'object') response.setHeader('retry-after', behaviour.retryAfterSeconds);
      const status = typeof behaviour === 'object' ? 429 : behaviour;
      response.writeHead(status, { 'content-type': 'application/json' }).end('{"message":"the host fails"}');
      return;
    }
    const headers = { ...request.headers, host: host.host, 'accept-encoding': 'identity' };
    const outgoing = forward(new URL(request.url ?? '/', host.origin), { method: request.method, headers });
    const answered = once(outgoing, 'response');
    outgoing.end(sent);
    const [incoming] = (await answered) as [IncomingMessage];
    const answer = await buffer(incoming);
    if (behaviour === 'lose') return void response.destroy();
    const body = answer.toString('latin1').replaceAll(host.origin, origin);
    response.writeHead(incoming.statusCode ?? 502, headersOf(incoming, host.origin, origin)).end(Buffer.from(body, 'latin1'));
  }

  return {
    url: `${origin}${host.pathname === '/' ? '' : host.pathname}`,
    intercept(next) {
      interceptor = next;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy listens nowhere');
  return address.port;
}

const perConnection = new Set(['connection', 'keep-alive', 'transfer-encoding', 'content-length']);

function headersOf({ headers }: IncomingMessage, from: string, to: string): OutgoingHttpHeaders {
  const kept = Object.entries(headers).filter(([name]) => !perConnection.has(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, typeof value === 'string' ? value.replaceAll(from, to) : value]));
}
