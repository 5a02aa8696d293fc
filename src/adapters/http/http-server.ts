import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import express from 'express';
import { type Skep, shuttingDown } from '../../application/skep.ts';
import type { HttpServerOptions } from './http-options.ts';
import { isBodyTaken, originForm } from './request-input.ts';
import { routerOf } from './router.ts';
import { handleUpgrades, isWebSocketRequest } from './web-socket.ts';

export interface HttpServer {
  /** The address of the server: `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly port: number;
  /** Resolves when all active requests are answered, or when the time is over and they are cut off. Idempotent. */
  close(): Promise<void>;
}

/** The default address of a server. Clients of the API find it in every server's OpenAPI document. */
const localUrl = 'http://127.0.0.1:3000';

/** The system probes idle connections. So one whose client's machine or network is gone ends, and no longer counts as open. */
export const probing = { keepAlive: true, keepAliveInitialDelay: 30_000 };

/** Serves the HTTP API at its own address. Rejects with the system's error if it can't listen there. */
export async function createHttpServer(skep: Skep, options: HttpServerOptions = {}): Promise<HttpServer> {
  const { host = '127.0.0.1', drainMs = 10_000, requestTimeoutMs = 30_000 } = options;
  const headersTimeout = Math.min(options.headersTimeoutMs ?? 10_000, requestTimeoutMs);
  const server = createServer({
    ...probing,
    // No limit here, because a body that is read as a stream may take longer. See `late` below.
    requestTimeout: 0,
    headersTimeout,
    connectionsCheckingInterval: Math.min(1000, Math.ceil(headersTimeout / 2)),
    keepAliveTimeout: options.keepAliveTimeoutMs ?? 5000,
    maxHeaderSize: options.maxHeaderBytes ?? 16 * 1024,
    shouldUpgradeCallback: isWebSocketRequest,
  });
  server.timeout = options.writeTimeoutMs ?? 30_000;
  const { url, port } = await listen(server, options.port ?? 3000, host);

  // Node accepts no connection before this code returns to the event loop, so the handlers below get every request.
  const ending = new AbortController();
  const app = express().disable('x-powered-by').set('trust proxy', options.trustProxy ?? []);
  // With a wildcard host, the address that a client uses is not known. Then the OpenAPI document's own address is right.
  const known = host === '0.0.0.0' || host === '::' ? {} : { publicUrl: url };
  app.use(routerOf(skep, { ...known, ...options }, ending.signal, localUrl));
  const upgraded = handleUpgrades(server, (request, response) => {
    request.url = originForm(request);
    app(request, response);
  });
  server.on('request', (request, response) => {
    request.url = originForm(request);
    const late = setTimeout(() => {
      if (!request.complete && (response.writableFinished || !isBodyTaken(request))) request.destroy();
    }, requestTimeoutMs).unref();
    // The rest of a body that the response did not wait for is discarded until the same limit. If its connection ends before, Node reports
    // no end of the request.
    response.once('finish', () => late.refresh());
    request.once('close', () => clearTimeout(late));
    app(request, response);
  });

  const drain = createDrain(server, upgraded);
  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    ending.abort(shuttingDown);
    await drain(drainMs);
  };
  return { url, port, close: () => (closing ??= close()) };
}

/** Waits for active requests, then cuts off the rest. Node alone would wait for connections that never sent a request. */
export function createDrain(server: Server, upgraded: ReadonlySet<Duplex> = new Set()): (limitMs: number) => Promise<void> {
  const unanswered = new Map<Socket, number>();
  let draining = false;
  const closeIfIdle = (): void => {
    if (draining && unanswered.size === 0) server.closeAllConnections();
  };
  server.on('connection', (socket: Socket) => {
    socket.once('close', () => {
      unanswered.delete(socket);
      closeIfIdle();
    });
  });
  server.on('request', ({ socket }, response) => {
    unanswered.set(socket, (unanswered.get(socket) ?? 0) + 1);
    response.once('close', () => {
      const left = (unanswered.get(socket) ?? 1) - 1;
      if (left > 0) unanswered.set(socket, left);
      else unanswered.delete(socket);
      closeIfIdle();
    });
  });
  return async (limitMs) => {
    draining = true;
    const closed = once(server, 'close');
    server.close();
    const late = setTimeout(() => {
      server.closeAllConnections();
      for (const socket of upgraded) socket.destroy();
    }, limitMs);
    closeIfIdle();
    await closed;
    clearTimeout(late);
  };
}

/** Starts to listen. Returns an address that works on this machine. Rejects with the system's error if it can't listen. */
export async function listen(server: Server, asked: number, host: string): Promise<{ readonly url: string; readonly port: number }> {
  server.listen(asked, host);
  await once(server, 'listening');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has this address
  const { port } = server.address() as AddressInfo;
  return { url: `http://${shownHost(host)}:${port}`, port };
}

function shownHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return isIPv6(host) ? `[${host}]` : host;
}
