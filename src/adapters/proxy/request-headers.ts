import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { passedCookies } from './credentials.ts';
import { addressHeaders, type Target } from './target.ts';
import { linkParameter } from '../http/port-links.ts';

/** Headers of one connection, which are not for the next. The framing of the body stays, since the library makes its own from it. */
const ofConnection = [
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer', 'upgrade', 'expect',
];

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
  /** The sandbox's own key, if it is to be sent; null otherwise. */
  readonly sessionKey: string | null;
}

/** Returns the headers that the sandbox gets: nothing of Skep's credentials, and where the request came from. */
export function requestHeaders({ headers }: IncomingMessage, forwarded: ForwardedRequest): IncomingHttpHeaders {
  const { target, client, protocol, isWebSocket, keepsAuthorization, sessionKey } = forwarded;
  const kept = withoutHeadersOfConnection(headers);
  for (const name of Object.keys(kept)) if (ofSkep.has(name) || name.startsWith('x-forwarded-')) delete kept[name];
  if (!keepsAuthorization) delete kept.authorization;
  const cookie = passedCookies(headers.cookie);
  if (cookie === undefined) delete kept.cookie;
  else kept.cookie = cookie;
  if (kept.referer?.includes(linkParameter) === true) delete kept.referer;
  if (isWebSocket) Object.assign(kept, { connection: 'Upgrade', upgrade: 'websocket' });
  kept['x-forwarded-for'] = client;
  kept['x-forwarded-proto'] = protocol;
  if (headers.host !== undefined) kept['x-forwarded-host'] = headers.host;
  if (target.prefix !== '') kept['x-forwarded-prefix'] = target.prefix;
  if (sessionKey !== null) kept['x-session-api-key'] = sessionKey;
  return kept;
}

/** Returns a copy without the headers that are for one connection, also those that `Connection` names. */
export function withoutHeadersOfConnection(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  const dropped = new Set([...ofConnection, ...named.filter((name) => name !== 'content-length' && name !== 'transfer-encoding')]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped.has(name)));
}
