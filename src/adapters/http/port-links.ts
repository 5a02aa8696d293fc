import { z } from 'zod';
import type { Skep } from '../../application/skep.ts';
import { createSealer } from './sealed-text.ts';

/** Where clients reach the proxy to the ports of sandboxes. */
export interface ProxyAddress {
  /** Ports are found below it by path: `http://127.0.0.1:3001`. */
  readonly url: string;
  /** The domain whose subdomains lead to the proxy too. Its scheme and port are those of the URL. */
  readonly domain?: string | undefined;
}

/** The domain that every browser takes for its own machine, without DNS. Other programs may not. */
export const browserDomain = 'localhost';

/** Returns the address of a port for programs: by host if the domain is known to all of them, otherwise by path. */
export function portUrl(proxy: ProxyAddress, sandboxId: string, port: number): string {
  return proxy.domain === browserDomain ? byPath(proxy, sandboxId, port) : urlForBrowsers(proxy, sandboxId, port);
}

/** Returns the address of a port for browsers. By host, each port is an origin of its own. */
export function urlForBrowsers({ url, domain }: ProxyAddress, sandboxId: string, port: number): string {
  if (domain === undefined) return byPath({ url }, sandboxId, port);
  const { protocol, port: proxyPort } = new URL(url);
  return `${protocol}//${port}-${sandboxId}.${domain}${proxyPort === '' ? '' : `:${proxyPort}`}`;
}

function byPath({ url }: ProxyAddress, sandboxId: string, port: number): string {
  return `${url}/${sandboxId}/${port}`;
}

/** What the token of a link holds. The digest is that of the credential that made it. */
export interface PortToken {
  readonly sandboxId: string;
  readonly port: number;
  readonly expiresAt: number;
  readonly digest: string;
}

const content = z.tuple([z.string(), z.int(), z.number(), z.string()]);

export interface PortTokens {
  seal(token: PortToken): string;
  /** Returns null for a text that is no token of this deployment. It may have expired. */
  open(text: string): PortToken | null;
}

export function createPortTokens({ secret }: Pick<Skep, 'secret'>): PortTokens {
  // A key of their own: no other sealed text of the deployment is a token.
  const sealer = createSealer(`port-links ${secret}`);
  return {
    seal: ({ sandboxId, port, expiresAt, digest }) => sealer.seal(JSON.stringify([sandboxId, port, expiresAt, digest])),
    open(text) {
      const opened = sealer.open(text);
      if (opened === null) return null;
      const [sandboxId, port, expiresAt, digest] = content.parse(JSON.parse(opened));
      return { sandboxId, port, expiresAt, digest };
    },
  };
}

export const linkParameter = 'skep_link';
