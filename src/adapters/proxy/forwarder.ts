import { type ClientRequest, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createProxyServer } from 'httpxy';
import { type ForwardedRequest, requestHeaders, responseHeaders } from './proxied-headers.ts';

/** Forwards the request with the proxy library. Resolves when the response has ended. Rejects if the sandbox sent no response. */
export async function forwardRequest(request: IncomingMessage, response: ServerResponse, forwarded: ForwardedRequest): Promise<void> {
  const cleanResponse = prepare(request, forwarded);
  // A library proxy for each request. With one for all, data in a WeakMap by request would stay until the next full collection.
  const library = createProxyServer(optionsOf(forwarded));
  library.on('proxyReq', refuseUpgrade);
  library.on('proxyRes', (returned) => {
    cleanResponse(returned);
    returned.headers.connection = response.shouldKeepAlive ? 'keep-alive' : 'close';
  });
  await library.web(request, response);
}

/** Refuses an upgrade that the sandbox starts by itself. Without a listener the request would never end. */
function refuseUpgrade(outgoing: ClientRequest): void {
  outgoing.once('upgrade', (_, upstream: Socket) => {
    upstream.destroy();
    outgoing.emit('error', new Error('the sandbox upgraded a request that asked for no upgrade'));
  });
}

/** Connects the socket with one to the sandbox. If that is not possible, calls `failed`, which sends the response. */
export function forwardUpgrade(
  request: IncomingMessage, socket: Duplex, head: Buffer, forwarded: ForwardedRequest, failed: (error: Error) => void,
): void {
  const cleanResponse = prepare(request, forwarded);
  const library = createProxyServer(optionsOf(forwarded));
  let isAnswered = false;
  library.on('error', (error) => {
    // After the response has begun, an error response would land in the middle of the data.
    if (!isAnswered) failed(error);
  });
  const answered = (returned: IncomingMessage): void => {
    cleanResponse(returned);
    isAnswered = true;
  };
  library.on('proxyReqWs', (outgoing, _, client) => {
    // These listeners run before those of the library.
    outgoing.once('response', answered);
    outgoing.once('upgrade', (returned: IncomingMessage, upstream: Socket) => {
      answered(returned);
      Object.assign(returned.headers, { connection: 'Upgrade', upgrade: 'websocket' });
      // Each socket closes with the other. The client still gets all data that the sandbox wrote.
      client.once('close', () => upstream.destroy());
      upstream.once('close', () => client.destroySoon());
    });
    client.once('close', () => outgoing.destroy());
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the sockets of Node's servers are of this type
  void library.ws(request, socket as Socket, {}, head);
}

/** Prepares the request for the sandbox. Returns a function that prepares the response for the client. */
function prepare(request: IncomingMessage, forwarded: ForwardedRequest): (response: IncomingMessage) => void {
  const { target, keepsPrefix } = forwarded;
  request.headers = requestHeaders(request, forwarded);
  request.url = (keepsPrefix ? target.prefix : '') + target.path;
  return (response) => {
    // Node throws on some status lines of a sandbox, in a place where nothing can catch it.
    if ((response.statusCode ?? 0) < 100) response.statusCode = 502;
    response.statusMessage = STATUS_CODES[response.statusCode ?? 502] ?? '';
    response.headers = responseHeaders(response.headers, forwarded);
  };
}

function optionsOf({ agent }: ForwardedRequest) {
  return { target: agent.url, ...(agent.url.protocol === 'http:' && { agent }) };
}
