import { z } from 'zod';
import type { Skep } from '../../application/skep.ts';
import { createTokenCipher } from './token-cipher.ts';

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
export interface PortToken {
  readonly sandboxId: string;
  readonly port: number;
  readonly expiresAt: number;
  readonly digest: string;
}

const content = z.tuple([z.string(), z.int(), z.number(), z.string()]);

export interface PortTokens {
  encode(token: PortToken): string;
  /** Returns null if the text is not a token of this deployment. The token may have expired. */
  decode(text: string): PortToken | null;
}

export function createPortTokens({ secret }: Pick<Skep, 'secret'>): PortTokens {
  // Uses a separate key, so no other encrypted text of the deployment is a valid token.
  const cipher = createTokenCipher(`port-links ${secret}`);
  return {
    encode: ({ sandboxId, port, expiresAt, digest }) => cipher.encrypt(JSON.stringify([sandboxId, port, expiresAt, digest])),
    decode(text) {
      const opened = cipher.decrypt(text);
      if (opened === null) return null;
      const [sandboxId, port, expiresAt, digest] = content.parse(JSON.parse(opened));
      return { sandboxId, port, expiresAt, digest };
    },
  };
}

export const linkParameter = 'skep_link';
