import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createProxyServer } from 'httpxy';
import type { PortAgent } from './port-connections.ts';
import { type ForwardedRequest, requestHeaders, responseHeaders } from './proxied-headers.ts';

export interface Forwarded extends ForwardedRequest {
  readonly url: string;
  readonly agent: PortAgent;
}

/** Hands requests to the library, with the headers of both ways made safe. */
export class Forwarder {
  readonly #requests = createProxyServer();
  readonly #sockets = createProxyServer();
  readonly #returned = new WeakMap<IncomingMessage, (response: IncomingMessage) => void>();
  readonly #failed = new WeakMap<IncomingMessage, (error: Error) => void>();

  constructor() {
    this.#requests.on('proxyRes', (response, request) => this.#returned.get(request)?.(response));
    // Nobody asked for an upgrade. Without a listener the request would never end.
    this.#requests.on('proxyReq', (outgoing) => void outgoing.once('upgrade', (_, upstream: Socket) => {
      upstream.destroy();
      outgoing.emit('error', new Error('the sandbox upgraded a request that asked for no upgrade'));
    }));
    this.#sockets.on('proxyReqWs', (outgoing, request, socket) => {
      const returned = (response: IncomingMessage): void => {
        this.#returned.get(request)?.(response);
        // What breaks now must not be answered in the middle of what the client reads.
        this.#failed.delete(request);
      };
      // These come before the library's own listeners.
      outgoing.once('response', returned);
      outgoing.once('upgrade', (response: IncomingMessage, upstream: Socket) => {
        returned(response);
        response.headers = { ...response.headers, connection: 'Upgrade', upgrade: 'websocket' };
        linkEnds(socket, upstream);
      });
      socket.once('close', () => outgoing.destroy());
    });
    this.#sockets.on('error', (error, request) => {
      if (request !== undefined) this.#failed.get(request)?.(error);
    });
  }

  /** Resolves when the response has ended. Rejects if the sandbox gave none. */
  async forward(request: IncomingMessage, response: ServerResponse, forwarded: Forwarded): Promise<void> {
    this.#prepare(request, forwarded, () => ({ connection: response.shouldKeepAlive ? 'keep-alive' : 'close' }));
    await this.#requests.web(request, response, targetOf(forwarded));
  }

  /** Joins the socket with one to the sandbox. `failed` is called if there will be none; it answers. */
  forwardSocket(request: IncomingMessage, socket: Duplex, head: Buffer, forwarded: Forwarded, failed: (error: Error) => void): void {
    this.#prepare(request, forwarded, () => ({}));
    this.#failed.set(request, failed);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the sockets of Node's servers are of this type
    void this.#sockets.ws(request, socket as Socket, targetOf(forwarded), head);
  }

  #prepare(request: IncomingMessage, forwarded: Forwarded, added: () => Readonly<Record<string, string>>): void {
    const { host } = request.headers;
    const upstream = new URL(forwarded.url).host;
    request.headers = requestHeaders(request, forwarded);
    request.url = (forwarded.keepsPrefix ? forwarded.target.prefix : '') + forwarded.target.path;
    this.#returned.set(request, (response) => {
      // Node throws for some of what a sandbox may send here, where nothing can catch it.
      if ((response.statusCode ?? 0) < 100) response.statusCode = 502;
      response.statusMessage = STATUS_CODES[response.statusCode ?? 502] ?? '';
      response.headers = { ...responseHeaders(response.headers, { target: forwarded.target, host, upstream }), ...added() };
    });
  }
}

function targetOf({ url, agent }: Forwarded): { target: string; agent?: PortAgent } {
  return { target: url, ...(url.startsWith('http:') && { agent }) };
}

/** Ends either socket with the other. The client still gets what the sandbox wrote. */
function linkEnds(client: Socket, upstream: Socket): void {
  client.once('close', () => upstream.destroy());
  upstream.once('close', () => client.destroySoon());
}
