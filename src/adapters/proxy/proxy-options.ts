export const defaultConnectionsPerSandbox = 1000;

/** How the proxy behaves, wherever it is mounted. */
export interface ProxyOptions {
  /** The address at which clients reach the proxy: `https://sandboxes.example.com`. */
  readonly url: string;
  /** The domain whose subdomains `<port>-<sandbox>` lead to the proxy; none unless given. */
  readonly domain?: string;
  /** Requests and sockets that may be open at a time for one sandbox; 1,000 unless given, null is no limit. */
  readonly connectionsPerSandbox?: number | null;
  /** Wrong keys that one client address may try in a minute; 20 unless given. */
  readonly failedLoginsPerMinute?: number;
  /** The addresses and networks of proxies whose `X-Forwarded-For` says which client asks; none unless given. */
  readonly trustProxy?: readonly string[];
}

/** How the proxy's own server behaves. */
export interface ProxyServerOptions extends Omit<ProxyOptions, 'url'> {
  /** Default: the address on which it listens. */
  readonly url?: string;
  /** 127.0.0.1 unless given. */
  readonly host?: string;
  /** 3001 unless given; 0 is any free one. */
  readonly port?: number;
  /** How long closing waits for the requests under way; 10,000 unless given. */
  readonly drainMs?: number;
}
