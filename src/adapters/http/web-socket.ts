import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { HttpProblem } from './problems.ts';
import type { RequestContext } from './request-context.ts';
import { headerOf } from './request-input.ts';

const maxMessageBytes = 1024 * 1024;

const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, clientTracking: false, maxPayload: maxMessageBytes });

/** The bytes that the client sent after the head of its upgrade request. */
const upgradeHeads = new WeakMap<IncomingMessage, Buffer>();

/** Returns true for a WebSocket upgrade. Other upgrades, such as to HTTP/2, are ignored: the request gets a normal response. */
export function isWebSocketRequest(request: IncomingMessage): boolean {
  return headerOf(request, 'upgrade')?.toLowerCase() === 'websocket';
}

/**
 * Routes upgrades like requests, with the same keys and failures. Call it for your own server, or nobody can attach to executions. Other
 * paths than the mount `path` of the router, and those below it, are left to your own listeners, or closed if there is none. Default: all
 * paths are routed.
 */
export function handleUpgrades(
  server: Server, app: (request: IncomingMessage, response: ServerResponse) => void, { path = '' }: { readonly path?: string } = {},
): ReadonlySet<Duplex> {
  const open = new Set<Duplex>();
  server.on('upgrade', (request, socket, head) => {
    // Node has no listener for its errors any more.
    socket.on('error', () => socket.destroy());
    if (path !== '' && !isAtOrBelow(path.replace(/\/+$/, ''), request.url ?? '')) {
      if (server.listenerCount('upgrade') === 1) socket.destroy();
      return;
    }
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    const response = new ServerResponse(request);
    upgradeHeads.set(request, head);
    response.shouldKeepAlive = false;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node types it for servers that are given another kind of stream
    response.assignSocket(socket as Socket);
    response.once('finish', () => socket.end());
    app(request, response);
  });
  return open;
}

function isAtOrBelow(path: string, url: string): boolean {
  return url.startsWith(path) && /^(?:[/?]|$)/.test(url.slice(path.length));
}

/**
 * Returns a function that turns the connection into a WebSocket. Throws unless the request asks for one, and its page, if any, has an
 * allowed origin.
 */
export function requireWebSocket({ request, http }: RequestContext): (accept: (socket: WebSocket) => void) => void {
  const head = upgradeHeads.get(request);
  if (head === undefined) throw new HttpProblem('upgrade_required', {});
  const { origin, host } = request.headers;
  const { corsOrigins = [], publicUrl } = http.options;
  const own = [publicUrl === undefined ? null : new URL(publicUrl).origin, `http://${host}`, `https://${host}`];
  if (origin !== undefined && !corsOrigins.includes(origin) && !own.includes(origin)) throw new HttpProblem('origin_forbidden', {});
  return (accept) => sockets.handleUpgrade(request, request.socket, head, accept);
}
