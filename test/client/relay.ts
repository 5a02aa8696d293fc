import { once } from 'node:events';
import { createServer, type IncomingMessage, request as send, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

/** What the relay does with a request. */
export type Mishap =
  | { readonly kind: 'answer'; readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  /** Sends no response. */
  | { readonly kind: 'hang' }
  /** Sends the request to the server, and loses its response. */
  | { readonly kind: 'lose' }
  /** Sends this many bytes of the response. Then breaks the connection, ends it as if the response were complete, or sends no more. */
  | { readonly kind: 'cut' | 'end' | 'stall'; readonly bytes: number };

export interface Relay {
  readonly url: string;
  /** The requests so far, as `GET /path`. */
  readonly seen: string[];
  /** Returns what happens to a request. Null if it only passes. */
  mishap: (target: string) => Mishap | null;
  /** The headers that the relay removes from requests. */
  readonly dropped: Set<string>;
}

/** Starts a proxy in front of a server, which disturbs requests. It is closed at the end of the test. */
export async function startRelay(url: string): Promise<Relay> {
  const sockets = new Set<Socket>();
  const upstream = new URL(url);
  const server = createServer((request, response) => {
    const mishap = note(request);
    if (mishap?.kind === 'hang') return;
    if (mishap?.kind === 'answer') {
      response.writeHead(mishap.status, { 'Content-Type': 'application/json', ...mishap.headers }).end(mishap.body);
      return;
    }
    void answer(request, response, mishap).catch(() => response.destroy());
  });

  async function answer(request: IncomingMessage, response: ServerResponse, mishap: Mishap | null): Promise<void> {
    const answered = await forward(request, response);
    if (mishap?.kind === 'lose') {
      request.socket.destroy();
      return;
    }
    const { 'content-length': length, ...headers } = answered.headers;
    // Without its length, a response that ends too early looks complete.
    const isCounted = length !== undefined && mishap?.kind !== 'end';
    response.writeHead(answered.statusCode ?? 0, isCounted ? { ...headers, 'content-length': length } : headers).flushHeaders();
    let left = mishap !== null && 'bytes' in mishap ? mishap.bytes : Infinity;
    for await (const part of answered as AsyncIterable<Buffer>) {
      response.write(part.subarray(0, left));
      left -= part.length;
      if (left < 0) break;
    }
    if (left < 0 && mishap?.kind === 'cut') response.socket?.destroySoon();
    else if (left >= 0 || mishap?.kind !== 'stall') response.end();
  }

  function note(request: IncomingMessage): Mishap | null {
    const target = `${request.method ?? ''} ${request.url ?? ''}`;
    relay.seen.push(target);
    for (const name of relay.dropped) delete request.headers[name];
    return relay.mishap(target);
  }

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<IncomingMessage> {
    const { method, url: path, headers } = request;
    const body = await buffer(request);
    const sent = send({ host: upstream.hostname, port: upstream.port, method, path, headers: { ...headers, host: upstream.host }, agent: false });
    response.once('close', () => sent.destroy());
    sent.end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return answer;
  }

  server.on('connection', (socket) => void sockets.add(socket.once('close', () => sockets.delete(socket))));
  server.on('upgrade', (request, socket: Socket) => {
    const mishap = note(request);
    const behind = connect(Number(upstream.port), upstream.hostname);
    const end = (): void => {
      socket.destroy();
      behind.destroy();
    };
    const head = Object.entries({ ...request.headers, host: upstream.host }).map(([name, value]) => `${name}: ${String(value)}\r\n`);
    behind.write(`GET ${request.url ?? ''} HTTP/1.1\r\n${head.join('')}\r\n`);
    let left = mishap !== null && 'bytes' in mishap ? mishap.bytes : Infinity;
    behind.on('data', (part: Buffer) => {
      if (!socket.write(part.subarray(0, left))) behind.pause();
      left -= part.length;
      if (left < 0) socket.end(end);
    });
    socket.on('drain', () => behind.resume()).on('data', (part: Buffer) => behind.write(part));
    for (const one of [socket, behind]) one.on('error', end).on('close', end);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const relay: Relay = { url: `http://127.0.0.1:${port}`, seen: [], mishap: () => null, dropped: new Set() };
  return relay;
}

/** The mishaps of the first requests that match. Later requests only pass. */
export function first(pattern: RegExp, ...mishaps: readonly Mishap[]): Relay['mishap'] {
  const left = [...mishaps];
  return (target) => (pattern.test(target) ? (left.shift() ?? null) : null);
}
