import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { isIPv6 } from 'node:net';
import type { Skep } from '../../application/skep.ts';
import { Failure } from '../../domain/failure.ts';
import { refusing } from './answering.ts';
import { Connections } from './connections.ts';
import { deploymentOf } from './deployment.ts';
import { Dispatcher } from './dispatcher.ts';
import { settingsOf, type HttpServerOptions } from './options.ts';
import { operations } from './routes/index.ts';

export interface HttpServer {
  /** Where it listens: `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly port: number;
  /**
   * Takes no new connection and no new request, and answers when the requests under way are, or when it has waited long
   * enough for them and cut them off. Idempotent.
   */
  close(): Promise<void>;
}

/** Whoever is refused because the server ends may find another one, or this one again, after so long. */
const shuttingDown = new Failure('shutting_down', { retryAfterSeconds: 5 });

/** Serves the HTTP interface on an address of its own. Rejects with the system's error where it can't listen there. */
export async function createHttpServer(skep: Skep, options: HttpServerOptions = {}): Promise<HttpServer> {
  const { host = '127.0.0.1', drainMs = 10_000 } = options;
  const server = createServer(limitsOf(options));
  server.timeout = options.writeTimeoutMs ?? 30_000;
  const connections = new Connections(server);

  server.listen(options.port ?? 3000, host);
  await once(server, 'listening');
  const port = portOf(server);
  const url = `http://${shownHost(host)}:${port}`;

  // No connection is looked at before this turn of the event loop ends.
  const ending = new AbortController();
  const deployment = deploymentOf(skep, settingsOf({ publicUrl: url, ...options }), ending.signal);
  const { dispatch } = new Dispatcher(deployment, operations);
  const refuse = refusing(deployment, shuttingDown, false);
  server.on('request', (request, response) => {
    connections.follow(request, response);
    if (connections.draining) refuse(request, response, '');
    else dispatch(request, response, '');
  });

  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    ending.abort();
    await connections.drain(drainMs);
  };
  return { url, port, close: () => (closing ??= close()) };
}

function limitsOf(options: HttpServerOptions) {
  const requestTimeout = options.requestTimeoutMs ?? 30_000;
  const headersTimeout = Math.min(options.headersTimeoutMs ?? 10_000, requestTimeout);
  return {
    requestTimeout,
    headersTimeout,
    connectionsCheckingInterval: Math.min(1000, Math.ceil(headersTimeout / 2)),
    keepAliveTimeout: options.keepAliveTimeoutMs ?? 5000,
    maxHeaderSize: options.maxHeaderBytes ?? 16 * 1024,
  };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port');
  return address.port;
}

/** An address by which this machine reaches what listens on the host. */
function shownHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return isIPv6(host) ? `[${host}]` : host;
}
