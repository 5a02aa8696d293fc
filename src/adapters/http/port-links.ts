import { z } from 'zod';
import type { Skep } from '../../application/skep.ts';
import { createSealedTokens, type SealedTokens } from './sealed-tokens.ts';

/** The address of the port proxy for clients. */
export interface ProxyAddress {
  /** The base URL for ports addressed by path: `http://127.0.0.1:3001`. */
  readonly url: string;
  /** The domain whose subdomains lead to the proxy too. Scheme and port are those of the URL. */
  readonly domain?: string | undefined;
}

/** The domain that every browser resolves to its own machine, without DNS. Other programs may not. */
export const browserDomain = 'localhost';

/** Returns the address of a port for programs: by host if every program can resolve the domain, otherwise by path. */
export function portUrl(proxy: ProxyAddress, sandboxId: string, port: number): string {
  return proxy.domain === browserDomain ? byPath(proxy, sandboxId, port) : urlForBrowsers(proxy, sandboxId, port);
}

/** Returns the address of a port for browsers. If the port is addressed by host, it is an origin of its own. */
export function urlForBrowsers({ url, domain }: ProxyAddress, sandboxId: string, port: number): string {
  if (domain === undefined) return byPath({ url }, sandboxId, port);
  const { protocol, port: proxyPort } = new URL(url);
  return `${protocol}//${port}-${sandboxId}.${domain}${proxyPort === '' ? '' : `:${proxyPort}`}`;
}

function byPath({ url }: ProxyAddress, sandboxId: string, port: number): string {
  return `${url}/${sandboxId}/${port}`;
}

/** The content of a link's token. The digest is that of the credential that made the link. */
const content = z.tuple([z.string(), z.int(), z.number(), z.string()])
  .transform(([sandboxId, port, expiresAt, digest]) => ({ sandboxId, port, expiresAt, digest }));

export type PortToken = z.output<typeof content>;
export type PortTokens = SealedTokens<typeof content>;

/** Uses a separate key, so no other token of the deployment is the token of a link. A decoded token may have expired. */
export function createPortTokens({ secret }: Pick<Skep, 'secret'>): PortTokens {
  return createSealedTokens(`port-links ${secret}`, content);
}

export const linkParameter = 'skep_link';
