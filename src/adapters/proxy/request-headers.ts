import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { passedCookies } from './credentials.ts';
import { addressHeaders, type Target } from './target.ts';
import { linkParameter } from '../http/port-links.ts';

/** Headers of one connection, which are not for the next. The framing of the body stays, since the library makes its own from it. */
const ofConnection: ReadonlySet<string> = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer', 'upgrade', 'expect',
]);

/**
 * The framing of a body. A WebSocket has none: a sandbox that declined it would read the next request on the connection as the body that was
 * announced.
 */
const framing: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding']);

/** Headers that Skep reads, and those that only a proxy in front may set. */
const ofSkep: ReadonlySet<string> = new Set(['x-session-api-key', 'forwarded', 'x-real-ip', ...addressHeaders.flat()]);

export interface ForwardedRequest {
  readonly target: Target;
  /** The address of the client. */
  readonly client: string;
  /** `http` or `https`, as the client sees it. */
  readonly protocol: string;
  readonly isWebSocket: boolean;
  /** Whether `Authorization` is for the sandbox. */
  readonly keepsAuthorization: boolean;
  /** Whether the sandbox gets the path with the prefix of the proxy. */
  readonly keepsPrefix: boolean;
  /** The sandbox's own key, if it is to be sent; null otherwise. */
  readonly sessionKey: string | null;
}

/** Returns the headers that the sandbox gets: nothing of Skep's credentials, and where the request came from. */
export function requestHeaders({ headers }: IncomingMessage, forwarded: ForwardedRequest): IncomingHttpHeaders {
  const { target, client, protocol, isWebSocket, keepsAuthorization, keepsPrefix, sessionKey } = forwarded;
  const kept = headersWithout(headers, (name) =>
    ofSkep.has(name) || name.startsWith('x-forwarded-') || name === 'cookie' || (name === 'authorization' && !keepsAuthorization) ||
    (name === 'referer' && headers.referer?.includes(linkParameter) === true) || (isWebSocket && framing.has(name)));
  const cookie = passedCookies(headers.cookie);
  if (cookie !== undefined) kept.cookie = cookie;
  if (isWebSocket) Object.assign(kept, { connection: 'Upgrade', upgrade: 'websocket' });
  kept['x-forwarded-for'] = client;
  kept['x-forwarded-proto'] = protocol;
  if (headers.host !== undefined) kept['x-forwarded-host'] = headers.host;
  if (target.prefix !== '' && !keepsPrefix) kept['x-forwarded-prefix'] = target.prefix;
  if (sessionKey !== null) kept['x-session-api-key'] = sessionKey;
  return kept;
}

/** Returns a copy without those that are to be dropped, and those that are for one connection, also if only `Connection` says so. */
export function headersWithout(headers: IncomingHttpHeaders, isDropped: (name: string) => boolean): IncomingHttpHeaders {
  const named = new Set((headers.connection ?? '').toLowerCase().split(',').map((name) => name.trim()));
  const kept: IncomingHttpHeaders = {};
  for (const name of Object.keys(headers)) {
    const isOfConnection = ofConnection.has(name) || (named.has(name) && !framing.has(name));
    if (!isOfConnection && !isDropped(name)) kept[name] = headers[name];
  }
  return kept;
}
