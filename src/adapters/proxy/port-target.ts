import type { IncomingMessage } from 'node:http';
import { dnsLabel } from '../../domain/dns-label.ts';
import { linkParameter } from '../http/port-links.ts';
import { headerOf, originForm } from '../http/request-input.ts';
import type { ProxyOptions } from './proxy-options.ts';

export interface PortTarget {
  readonly sandboxId: string;
  readonly port: number;
  /** How the port was addressed. Browsers use `host` and `path`. */
  readonly by: 'headers' | 'host' | 'path';
  /** The part before the path that the sandbox gets: `/sb-1/8000` if addressed by path, otherwise empty. */
  readonly prefix: string;
  /** The path and query for the sandbox, as the client sent them, without the token of a link. */
  readonly path: string;
  readonly token: string | null;
  /** True if the slash at the end of the prefix is missing. The proxy redirects a browser then, because relative links would be wrong. */
  readonly lacksSlash: boolean;
  /** The host that the program sees. */
  readonly host: string | undefined;
  /** `http` or `https`, if the client says it; null: that of the proxy's address. */
  readonly protocol: string | null;
}

type Address = Pick<PortTarget, 'by' | 'prefix' | 'host' | 'protocol'> & { readonly sandboxId: string; readonly port: string };

const portNumber = /^[1-9]\d{0,4}$/;

/** The headers that address a port: Skep's own, and those of E2B's clients. */
export const addressHeaders = [['x-skep-sandbox-id', 'x-skep-port'], ['e2b-sandbox-id', 'e2b-sandbox-port']] as const;

/** The header with the origin that the program sees, for a client that serves the port at an address of its own. */
export const originHeader = 'x-skep-origin';

/** Returns the port that the request addresses, by headers, else by host, else by path. Returns null if it addresses none. */
export function targetOf(request: IncomingMessage, { domain }: Pick<ProxyOptions, 'domain'>): PortTarget | null {
  const url = originForm(request);
  const { host } = request.headers;
  for (const [idHeader, portHeader] of addressHeaders) {
    const [sandboxId, port] = [headerOf(request, idHeader), headerOf(request, portHeader)];
    if (sandboxId !== null || port !== null) {
      const origin = originOf(headerOf(request, originHeader) ?? '') ?? { host, protocol: null };
      return target({ by: 'headers', sandboxId: sandboxId ?? '', port: port ?? '', prefix: '', ...origin }, url);
    }
  }
  const byHost = domain === undefined ? null : hostTarget(host ?? '', domain);
  if (byHost !== null) return target({ by: 'host', ...byHost, prefix: '', host, protocol: null }, url);
  const [, prefix = '', sandboxId = '', port = '', rest = ''] = /^(\/([^/?]*)\/([^/?]*))(.*)$/s.exec(url) ?? [];
  return target({ by: 'path', sandboxId, port, prefix, host, protocol: null }, rest);
}

function originOf(text: string): { readonly host: string; readonly protocol: string } | null {
  const { protocol = '', host = '' } = URL.parse(text) ?? {};
  return /^https?:$/.test(protocol) ? { host, protocol: protocol.slice(0, -1) } : null;
}

function hostTarget(host: string, domain: string): { readonly sandboxId: string; readonly port: string } | null {
  const name = host.toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '');
  if (!name.endsWith(`.${domain}`)) return null;
  const [, port = '', sandboxId = ''] = /^(\d+)-([^.]*)$/.exec(name.slice(0, -domain.length - 1)) ?? [];
  return { sandboxId, port };
}

function target({ port, ...address }: Address, url: string): PortTarget | null {
  if (!dnsLabel.test(address.sandboxId) || !portNumber.test(port) || Number(port) > 65_535) return null;
  const { path, token } = withoutToken(url);
  const lacksSlash = !path.startsWith('/');
  return { ...address, port: Number(port), path: lacksSlash ? `/${path}` : path, token, lacksSlash };
}

/** Removes the link's parameter from the query, in any encoding. The rest is unchanged. */
function withoutToken(url: string): { readonly path: string; readonly token: string | null } {
  const question = url.indexOf('?');
  if (question === -1) return { path: url, token: null };
  const parameters = url.slice(question + 1).split('&');
  const kept = parameters.filter((parameter) => nameOf(parameter) !== linkParameter);
  if (kept.length === parameters.length) return { path: url, token: null };
  const token = parameters.find((parameter) => nameOf(parameter) === linkParameter)?.split('=')[1] ?? null;
  return { path: url.slice(0, question) + (kept.length === 0 ? '' : `?${kept.join('&')}`), token };
}

function nameOf(parameter: string): string {
  const [name = ''] = parameter.split('=');
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
