import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { linkParameter } from '../http/port-links.ts';
import { isOwnCookie, passedCookies } from './port-cookie.ts';
import { e2bKeyHeader } from './port-visitor.ts';
import type { PortAgent } from './port-connections.ts';
import { addressHeaders, originHeader, type PortTarget } from './port-target.ts';

/** Headers of one connection, which are not forwarded. The body framing headers are kept, since the library makes its own from them. */
const hopByHopHeaders = [
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer', 'upgrade', 'expect',
];

/**
 * The body framing headers. They are removed from a WebSocket request: if the sandbox declined it, it would read the next request on the
 * connection as the body.
 */
const framingHeaders: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding']);

/** The hop-by-hop headers, those that Skep reads, and those that only a trusted proxy may set. */
const droppedRequestHeaders: ReadonlySet<string> = new Set([
  ...hopByHopHeaders, 'x-session-api-key', e2bKeyHeader, 'cookie', 'forwarded', 'x-real-ip', originHeader,
  ...addressHeaders.flat(),
]);

/** A request that may reach the port, with what the sandbox gets of it. */
export interface ForwardedRequest {
  readonly target: PortTarget;
  readonly agent: PortAgent;
  /** The client's address. */
  readonly client: string;
  /** `http` or `https`, as the client uses it. */
  readonly protocol: string;
  readonly isWebSocket: boolean;
  /** Names of further headers that have a credential of Skep. */
  readonly ownCredentials: ReadonlySet<string>;
  /** Whether the sandbox gets the path with the proxy's prefix. */
  readonly keepsPrefix: boolean;
  /** The sandbox's own key, if the sandbox gets it; otherwise null. */
  readonly sessionKey: string | null;
}

/** Returns the headers for the sandbox: none of Skep's credentials, and those that say where the request comes from. */
export function requestHeaders({ headers }: IncomingMessage, forwarded: ForwardedRequest): IncomingHttpHeaders {
  const { target, client, protocol, isWebSocket, ownCredentials, keepsPrefix, sessionKey } = forwarded;
  const { host } = target;
  const kept = headersWithout(headers, (name) =>
    droppedRequestHeaders.has(name) || name.startsWith('x-forwarded-') || ownCredentials.has(name) ||
    (name === 'referer' && headers.referer?.includes(linkParameter) === true) || (isWebSocket && framingHeaders.has(name)));
  const cookie = passedCookies(headers.cookie);
  if (cookie !== undefined) kept.cookie = cookie;
  if (isWebSocket) Object.assign(kept, { connection: 'Upgrade', upgrade: 'websocket' });
  kept['x-forwarded-for'] = client;
  kept['x-forwarded-proto'] = protocol;
  if (host !== undefined) Object.assign(kept, { host, 'x-forwarded-host': host });
  if (target.prefix !== '' && !keepsPrefix) kept['x-forwarded-prefix'] = target.prefix;
  if (sessionKey !== null) kept['x-session-api-key'] = sessionKey;
  return kept;
}

/** Returns a copy without the dropped headers and without those that `Connection` names. */
function headersWithout(headers: IncomingHttpHeaders, isDropped: (name: string) => boolean): IncomingHttpHeaders {
  const named = headers.connection?.toLowerCase().split(',').map((name) => name.trim()) ?? [];
  const kept: IncomingHttpHeaders = {};
  for (const name of Object.keys(headers)) {
    const isNamed = named.includes(name) && !framingHeaders.has(name);
    if (!isNamed && !isDropped(name)) kept[name] = headers[name];
  }
  return kept;
}

/** With these, a page could control the whole origin, redirect its visitors, or delete their cookies of all hosts of the domain. */
const droppedForBrowsers = ['service-worker-allowed', 'alt-svc', 'clear-site-data'];

/** The server frames the body itself. With the others, a reverse proxy would send one of its own files, or read one response as two. */
const droppedForReverseProxies = ['transfer-encoding', 'x-accel-redirect', 'x-sendfile'];

const droppedResponseHeaders: ReadonlySet<string> = new Set([...hopByHopHeaders, ...droppedForBrowsers, ...droppedForReverseProxies]);

/** The further headers that are dropped if several sandboxes share an origin. */
const droppedIfByPath: ReadonlySet<string> = new Set(['strict-transport-security', 'nel', 'report-to', 'reporting-endpoints']);

/** Returns the headers for the client. Cookies and redirects of a sandbox stay within its own addresses. */
export function responseHeaders(headers: IncomingHttpHeaders, { target, agent }: ForwardedRequest): IncomingHttpHeaders {
  const isByHost = target.by === 'host';
  const kept = headersWithout(headers, (name) => droppedResponseHeaders.has(name) || (!isByHost && droppedIfByPath.has(name)));
  const { location, 'set-cookie': cookies } = headers;
  if (location !== undefined) kept.location = rewriteLocation(location, target, agent.url.host);
  if (cookies !== undefined) kept['set-cookie'] = cookies.flatMap((cookie) => rewriteCookie(cookie, target));
  return kept;
}

/**
 * Returns the redirect's target for the client. Targets outside the sandbox and relative targets are unchanged. `upstream` is the host and
 * port at which the server reached the sandbox.
 */
function rewriteLocation(location: string, { prefix, port, host = '' }: PortTarget, upstream: string): string {
  const [, scheme = '', authority = '', rest = ''] = /^([a-z][a-z0-9+.-]*:)?\/\/([^/?#]*)(.*)$/is.exec(location) ?? [];
  if (authority === '') return location.startsWith('/') ? addPrefix(prefix, location) : location;
  const name = authority.toLowerCase();
  const own = host.toLowerCase();
  // A program may not know that its clients use HTTPS. A relative target keeps their scheme.
  if (name === own && scheme.toLowerCase() !== 'http:') return `${scheme}//${authority}${addPrefix(prefix, rest)}`;
  // Some programs, such as nginx, add their own port to the host of the request.
  const hosts = ['localhost', '127.0.0.1', '0.0.0.0', own.replace(/:\d+$/, '')].map((each) => `${each}:${port}`);
  return [upstream, own, ...hosts].includes(name) ? addPrefix(prefix, rest) : location;
}

function addPrefix(prefix: string, path: string): string {
  const rooted = path.startsWith('/') ? path : `/${path}`;
  const isPrefixed = prefix !== '' && new RegExp(`^${prefix}(?:[/?#]|$)`).test(rooted);
  // Browsers read a path that begins with two slashes as a host.
  return isPrefixed ? rooted : prefix + (prefix === '' ? rooted.replace(/^\/{2,}/, '/') : rooted);
}

/** Returns the cookie without a domain and, by path, with a path below the prefix; nothing if it has one of Skep's names. */
function rewriteCookie(cookie: string, { by, prefix }: PortTarget): string[] {
  const [pair = '', ...attributes] = cookie.split(';').map((part) => part.trim());
  if (isOwnCookie(pair) || pair.indexOf('=') < 1) return [];
  const named = attributes.filter((attribute) => attribute !== '').map((attribute) => {
    const [name = '', ...value] = attribute.split('=');
    return { name: name.trim().toLowerCase(), value: value.join('=').trim(), attribute };
  });
  const kept = named.filter(({ name }) => name !== 'domain' && (name !== 'path' || by !== 'path')).map(({ attribute }) => attribute);
  if (by !== 'path') return [[pair, ...kept].join('; ')];
  const path = named.findLast(({ name }) => name === 'path')?.value ?? '/';
  return [[pair, ...kept, `Path=${path.startsWith('/') ? addPrefix(prefix, path) : `${prefix}/`}`].join('; ')];
}
