import { browserDomain } from '../../adapters/http/port-links.ts';
import { isLoopback } from '../../adapters/shared/plain-http.ts';
import type { Settings } from './settings.ts';

/** Returns the port on which the proxy listens, the one after the API's unless it is set; null if it is off. */
export function proxyPortOf({ port, proxyPort = port === 0 || port === 65_535 ? 0 : port + 1 }: Settings): number | null {
  return proxyPort === 'off' ? null : proxyPort;
}

/** Returns the domain of the proxy. On loopback, browsers need none of their own to give each port an origin. */
export function proxyDomainOf({ host, proxyDomain, proxyUrl }: Settings): string | undefined {
  return proxyDomain ?? (isLoopback(host) && proxyUrl === undefined ? browserDomain : undefined);
}
