import { once } from 'node:events';
import { createServer, request as forward } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

/**
 * What happens to a request: the host's own answer, this status in place of it, no answer at all, or, with `lose`, that the host does what
 * it is asked for, and the connection breaks before its answer.
 */
export type HostBehaviour = 'answer' | 'stall' | 'lose' | number;

/** Called for each request before it is answered, which waits for it. */
export type Interceptor = () => HostBehaviour | Promise<HostBehaviour>;

/** Stands between a provider and its host, or a double of it, on the loopback interface, and can misbehave. */
export interface HostProxy {
  /** The host's URL, with the proxy's origin. */
  readonly url: string;
  readonly intercept: (interceptor: Interceptor | null) => void;
  readonly close: () => Promise<void>;
}

/** Forwards everything to an `http:` URL. Where the host names its own origin, in a header or a body, it is replaced by the proxy's. */
export async function startHostProxy(hostUrl: string): Promise<HostProxy> {
  const host = new URL(hostUrl);
  let interceptor: Interceptor | null = null;
  const server = createServer((request, response) => {
    // A client may leave in the middle.
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
    if (typeof behaviour === 'number') {
      response.writeHead(behaviour, { 'content-type': 'application/json' }).end('{"message":"the host fails"}');
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
