export const defaultConnectionsPerSandbox = 1000;

/** Options of the proxy, for every kind of mount. */
export interface ProxyOptions {
  /** The proxy's address for clients: `https://sandboxes.example.com`. */
  readonly url: string;
  /** The domain whose subdomains `<port>-<sandbox>` lead to the proxy. Default: none. */
  readonly domain?: string;
  /** Requests and sockets that one sandbox can have open at a time. Default: 1,000. Null: no limit. */
  readonly connectionsPerSandbox?: number | null;
  /** Wrong keys that one client address can try in a minute. Default: 20. */
  readonly failedLoginsPerMinute?: number;
  /** The addresses and networks of proxies whose `X-Forwarded-For` names the client. Default: none. */
  readonly trustProxy?: readonly string[];
}

export interface ProxyServerOptions extends Omit<ProxyOptions, 'url'> {
  /** Default: the address on which it listens. */
  readonly url?: string;
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: 3001. 0 chooses any free port. */
  readonly port?: number;
  /** How long an idle connection is kept for the next request, in milliseconds. Default: 5,000. */
  readonly keepAliveTimeoutMs?: number;
  /** How long `close` waits for active requests, in milliseconds. Default: 10,000. */
  readonly drainMs?: number;
}
