import type { IncomingHttpHeaders } from 'node:http';
import { isOwnCookie } from './credentials.ts';
import { headersWithout } from './request-headers.ts';
import type { Target } from './target.ts';

export interface ReturnedResponse {
  readonly target: Target;
  /** The header `Host` of the request. */
  readonly host: string | undefined;
  /** The host and port at which the server reached the sandbox. */
  readonly upstream: string;
}

/** With these, a page could take hold of the whole origin, or send its visitors elsewhere. */
const forBrowsers = ['service-worker-allowed', 'alt-svc'];

/** The server frames the body itself. With these, a server in front would send one of its own files, or read one answer as two. */
const forServers = ['transfer-encoding', 'x-accel-redirect', 'x-sendfile'];

const neverReturned: ReadonlySet<string> = new Set([...forBrowsers, ...forServers]);

/** The same, where several sandboxes share an origin. */
const notByPath: ReadonlySet<string> = new Set([
  'clear-site-data', 'strict-transport-security', 'nel', 'report-to', 'reporting-endpoints',
]);

/** Returns the headers that the client gets. What a sandbox sets stays within its own addresses. */
export function responseHeaders(headers: IncomingHttpHeaders, returned: ReturnedResponse): IncomingHttpHeaders {
  const isByHost = returned.target.by === 'host';
  const kept = headersWithout(headers, (name) => neverReturned.has(name) || (!isByHost && notByPath.has(name)));
  const { location, 'set-cookie': cookies } = headers;
  if (location !== undefined) kept.location = rewriteLocation(location, returned);
  if (cookies !== undefined) kept['set-cookie'] = cookies.flatMap((cookie) => rewriteCookie(cookie, returned.target));
  return kept;
}

/** Returns where a redirect leads for the client. One that leaves the sandbox, and a relative one, stays as it is. */
function rewriteLocation(location: string, { target, host, upstream }: ReturnedResponse): string {
  const { prefix, port } = target;
  const [, scheme = '', authority = '', rest = ''] = /^([a-z][a-z0-9+.-]*:)?\/\/([^/?#]*)(.*)$/is.exec(location) ?? [];
  if (authority === '') return location.startsWith('/') ? inside(prefix, location) : location;
  const name = authority.toLowerCase();
  const isInside = [upstream, `localhost:${port}`, `127.0.0.1:${port}`, `0.0.0.0:${port}`].includes(name);
  if (isInside) return inside(prefix, rest);
  return name === host?.toLowerCase() ? `${scheme}//${authority}${inside(prefix, rest)}` : location;
}

function inside(prefix: string, path: string): string {
  const rooted = path.startsWith('/') ? path : `/${path}`;
  const isPrefixed = prefix !== '' && new RegExp(`^${prefix}(?:[/?#]|$)`).test(rooted);
  // A path of two slashes at its beginning would be read as a host.
  return isPrefixed ? rooted : prefix + (prefix === '' ? rooted.replace(/^\/{2,}/, '/') : rooted);
}

/** Returns the cookie without a domain, and by path with a path below the prefix; nothing for one that bears a name of Skep's. */
function rewriteCookie(cookie: string, { by, prefix }: Target): string[] {
  const [pair = '', ...attributes] = cookie.split(';').map((part) => part.trim());
  if (isOwnCookie(pair) || pair.indexOf('=') < 1) return [];
  const named = attributes.filter((attribute) => attribute !== '').map((attribute) => {
    const [name = '', ...value] = attribute.split('=');
    return { name: name.trim().toLowerCase(), value: value.join('=').trim(), attribute };
  });
  const kept = named.filter(({ name }) => name !== 'domain' && (name !== 'path' || by !== 'path')).map(({ attribute }) => attribute);
  if (by !== 'path') return [[pair, ...kept].join('; ')];
  const path = named.findLast(({ name }) => name === 'path')?.value ?? '/';
  return [[pair, ...kept, `Path=${path.startsWith('/') ? inside(prefix, path) : `${prefix}/`}`].join('; ')];
}
