import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Skep } from '../../application/skep.ts';
import { drainer, shownHost } from '../http/server.ts';
import type { ProxyServerOptions } from './options.ts';
import { createProxy } from './proxy.ts';

export interface ProxyServer {
  readonly url: string;
  readonly port: number;
  /** Takes no new request, ends all sockets, and resolves when the requests under way have ended, or were cut off. Idempotent. */
  close(): Promise<void>;
}

const headersTimeoutMs = 10_000;

/** Serves the proxy on an address of its own. Rejects with the system's error if it can't listen there. */
export async function createProxyServer(skep: Skep, options: ProxyServerOptions = {}): Promise<ProxyServer> {
  const { host = '127.0.0.1', drainMs = 10_000 } = options;
  const limits = { requestTimeout: 0, headersTimeout: headersTimeoutMs, connectionsCheckingInterval: 1000, keepAliveTimeout: 5000 };
  const server = createServer({ ...limits, shouldUpgradeCallback: isWebSocket });
  server.listen(options.port ?? 3001, host);
  await once(server, 'listening');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has this address
  const { port } = server.address() as AddressInfo;
  const url = options.url ?? `http://${shownHost(host)}:${port}`;
  const proxy = createProxy(skep, { ...options, url });
  server.on('request', proxy.handleRequest);
  server.on('upgrade', proxy.handleUpgrade);
  const drain = drainer(server);
  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    proxy.drain();
    await drain(drainMs);
    proxy.close();
  };
  return { url, port, close: () => (closing ??= close()) };
}

/** Another upgrade is an offer that may be declined: the request is served as it is. */
function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}
