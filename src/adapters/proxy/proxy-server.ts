import { createServer } from 'node:http';
import type { Skep } from '../../application/skep.ts';
import { createDrain, listen, probing } from '../http/http-server.ts';
import { isWebSocketRequest } from '../http/web-socket.ts';
import type { ProxyServerOptions } from './proxy-options.ts';
import { createProxy } from './proxy.ts';

export interface ProxyServer {
  readonly url: string;
  readonly port: number;
  /** Refuses new requests, closes all sockets, and resolves when active requests have ended or were cut off. Idempotent. */
  close(): Promise<void>;
}

const headersTimeoutMs = 10_000;

/** Serves the proxy at its own address. Rejects with the system's error if it can't listen there. */
export async function createProxyServer(skep: Skep, options: ProxyServerOptions = {}): Promise<ProxyServer> {
  const { host = '127.0.0.1', keepAliveTimeoutMs: keepAliveTimeout = 5000, drainMs = 10_000 } = options;
  const limits = { requestTimeout: 0, headersTimeout: headersTimeoutMs, connectionsCheckingInterval: 1000, keepAliveTimeout };
  const server = createServer({ ...limits, ...probing, shouldUpgradeCallback: isWebSocketRequest });
  const { url: own, port } = await listen(server, options.port ?? 3001, host);
  const url = options.url ?? own;
  const proxy = createProxy(skep, { ...options, url });
  server.on('request', proxy.handleRequest);
  server.on('upgrade', proxy.handleUpgrade);
  const drain = createDrain(server);
  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    proxy.drain();
    await drain(drainMs);
    proxy.close();
  };
  return { url, port, close: () => (closing ??= close()) };
}
