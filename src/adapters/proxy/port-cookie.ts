import type { IncomingMessage } from 'node:http';
import type { Skep } from '../../application/skep.ts';
import { headerOf } from '../http/request-input.ts';
import type { ProxyOptions } from './proxy-options.ts';
import type { PortTarget } from './port-target.ts';

/** The prefix of Skep's own cookies. Sandboxes neither get nor set them. */
const ownCookiePrefix = 'skep_';

/** The cookie that is set when a link is opened. Its value is the token of the link. */
const portCookie = 'skep_port';

/** Returns the header that sets the cookie for the port's path or host, until the link expires. */
export function setPortCookie(
  { clock }: Pick<Skep, 'clock'>, { url }: Pick<ProxyOptions, 'url'>, { prefix }: PortTarget,
  { expiresAt, text }: { readonly expiresAt: number; readonly text: string },
): string {
  const seconds = Math.max(1, Math.floor((expiresAt - clock.now()) / 1000));
  const secure = url.startsWith('https:') ? '; Secure' : '';
  return `${portCookie}=${text}; Path=${prefix}/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`;
}

/** Returns the tokens in the cookies of a request. A page may have set further ones. */
export function cookieTokens({ headers }: IncomingMessage): readonly string[] {
  return (headers.cookie ?? '').split(';').flatMap((pair) => {
    const [name = '', value = ''] = pair.trim().split('=');
    return name === portCookie && value !== '' ? [value] : [];
  });
}

export function passedCookies(cookies: string | undefined): string | undefined {
  if (cookies === undefined) return undefined;
  const kept = cookies.split(';').map((pair) => pair.trim()).filter((pair) => pair !== '' && !isOwnCookie(pair));
  return kept.length === 0 ? undefined : kept.join('; ');
}

/** Returns true if the cookie has one of Skep's names. A page can set a cookie without a name: `=skep_port=x` is sent as `skep_port=x`. */
export function isOwnCookie(pair: string): boolean {
  return pair.replace(/^[\s=]*/, '').toLowerCase().replace(/^__(?:host|secure)-/, '').startsWith(ownCookiePrefix);
}

/** True for navigation and the same origin. Pages on other ports of a host are the same site, so browsers send them the cookie too. */
export function mayUseCookie(request: IncomingMessage, by: PortTarget['by'], publicUrl: string): boolean {
  const { origin, host } = request.headers;
  const site = headerOf(request, 'sec-fetch-site');
  const isNavigation = headerOf(request, 'sec-fetch-mode') === 'navigate' && (request.method === 'GET' || request.method === 'HEAD');
  if (isNavigation) return true;
  if (site !== null && site !== 'same-origin' && site !== 'none') return false;
  if (origin === undefined) return true;
  const originHost = URL.parse(origin)?.host;
  if (originHost === undefined) return false;
  // Addressed by path: a reverse proxy may have replaced `Host`, so the public URL counts too. By host: a page of the public URL belongs to
  // another sandbox.
  return originHost === host?.toLowerCase() || (by === 'path' && originHost === URL.parse(publicUrl)?.host);
}
