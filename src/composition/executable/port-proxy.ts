import { browserDomain } from '../../adapters/http/port-links.ts';
import type { ProxyAddress } from '../../adapters/http/index.ts';
import type { ProxyServer, ProxyServerOptions } from '../../adapters/proxy/index.ts';
import { isLoopback } from '../../adapters/shared/plain-http.ts';
import type { Skep } from '../../application/skep.ts';
import type { SkepConfig } from '../config/config-schema.ts';
import { omitUndefined } from '../config/field-schemas.ts';
import { portProxyPortOf } from '../config/settings.ts';

/** How long the servers wait for active requests. The rest of the time is for closing the other parts. */
export function drainMsOf({ shutdownTimeout }: Pick<SkepConfig, 'shutdownTimeout'>): number {
  return Math.min(10_000, shutdownTimeout / 2);
}

/** All options, so a new one does not compile until it is named. Undefined: its default. */
type EveryOption<Options> = { readonly [Name in keyof Required<Options>]: Options[Name] | undefined };

/** Returns the options of the proxy to the ports of sandboxes; null if the proxy is off. */
export function portProxyOptionsOf(config: SkepConfig): EveryOption<ProxyServerOptions> | null {
  const port = portProxyPortOf(config);
  if (port === null) return null;
  const { host, proxyUrl, proxyDomain, connectionsPerSandbox, trustProxy, keepAliveTimeout } = config;
  // On loopback there is a default, with which browsers give each port its own origin.
  const defaultDomain = isLoopback(host) && proxyUrl === undefined ? browserDomain : undefined;
  return {
    host,
    port,
    url: proxyUrl,
    domain: proxyDomain ?? defaultDomain,
    connectionsPerSandbox,
    failedLoginsPerMinute: undefined,
    trustProxy,
    keepAliveTimeoutMs: keepAliveTimeout,
    drainMs: drainMsOf(config),
  };
}

export interface PortProxy {
  readonly server: ProxyServer;
  readonly address: ProxyAddress;
}

/** Returns null if the proxy is off. */
export async function startPortProxy(skep: Skep, config: SkepConfig): Promise<PortProxy | null> {
  const options = portProxyOptionsOf(config);
  if (options === null) return null;
  const { createProxyServer } = await import('../../adapters/proxy/index.ts');
  const server = await createProxyServer(skep, omitUndefined(options));
  return { server, address: { url: server.url, domain: options.domain } };
}
