import { type ClientRequest, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createProxyServer } from 'httpxy';
import type { PortAgent } from './port-connections.ts';
import { type ForwardedRequest, requestHeaders, responseHeaders } from './proxied-headers.ts';

export interface Forwarded extends ForwardedRequest {
  readonly agent: PortAgent;
}

/** Hands the request to the library. Resolves when the response has ended. Rejects if the sandbox gave none. */
export async function forward(request: IncomingMessage, response: ServerResponse, forwarded: Forwarded): Promise<void> {
  const cleanResponse = prepare(request, forwarded);
  // Each request has a library proxy of its own. In a WeakMap by request, each would stay in memory until the next full collection.
  const library = createProxyServer(optionsOf(forwarded));
  library.on('proxyReq', refuseUpgrade);
  library.on('proxyRes', (returned) => {
    cleanResponse(returned);
    returned.headers.connection = response.shouldKeepAlive ? 'keep-alive' : 'close';
  });
  await library.web(request, response);
}

/** Nobody asked for an upgrade. Without a listener the request would never end. */
function refuseUpgrade(outgoing: ClientRequest): void {
  outgoing.once('upgrade', (_, upstream: Socket) => {
    upstream.destroy();
    outgoing.emit('error', new Error('the sandbox upgraded a request that asked for no upgrade'));
  });
}

/** Joins the socket with one to the sandbox. `failed` is called if there will be none; it answers. */
export function forwardSocket(
  request: IncomingMessage, socket: Duplex, head: Buffer, forwarded: Forwarded, failed: (error: Error) => void,
): void {
  const cleanResponse = prepare(request, forwarded);
  const library = createProxyServer(optionsOf(forwarded));
  let isAnswered = false;
  library.on('error', (error) => {
    // What breaks later must not be answered in the middle of what the client reads.
    if (!isAnswered) failed(error);
  });
  const answered = (returned: IncomingMessage): void => {
    cleanResponse(returned);
    isAnswered = true;
  };
  library.on('proxyReqWs', (outgoing, _, client) => {
    // These come before the library's own listeners.
    outgoing.once('response', answered);
    outgoing.once('upgrade', (returned: IncomingMessage, upstream: Socket) => {
      answered(returned);
      Object.assign(returned.headers, { connection: 'Upgrade', upgrade: 'websocket' });
      // Either ends with the other. The client still gets what the sandbox wrote.
      client.once('close', () => upstream.destroy());
      upstream.once('close', () => client.destroySoon());
    });
    client.once('close', () => outgoing.destroy());
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the sockets of Node's servers are of this type
  void library.ws(request, socket as Socket, {}, head);
}

/** Makes the request what the sandbox gets. Returns the function that does the same with the response. */
function prepare(request: IncomingMessage, forwarded: Forwarded): (response: IncomingMessage) => void {
  const { target, agent, keepsPrefix } = forwarded;
  const { host } = request.headers;
  request.headers = requestHeaders(request, forwarded);
  request.url = (keepsPrefix ? target.prefix : '') + target.path;
  return (response) => {
    // Node throws for some of what a sandbox may send here, where nothing can catch it.
    if ((response.statusCode ?? 0) < 100) response.statusCode = 502;
    response.statusMessage = STATUS_CODES[response.statusCode ?? 502] ?? '';
    response.headers = responseHeaders(response.headers, { target, host, upstream: agent.url.host });
  };
}

function optionsOf({ agent }: Forwarded): { target: URL; agent?: PortAgent } {
  return { target: agent.url, ...(agent.url.protocol === 'http:' && { agent }) };
}
