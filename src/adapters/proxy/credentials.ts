import type { IncomingMessage } from 'node:http';
import { headerOf } from '../http/request-input.ts';

/** Cookies whose names begin like this are Skep's own. No sandbox gets them, and none can set them. */
export const ownCookiePrefix = 'skep_';

/** The cookie that opening a link sets. Its value is the token of the link. */
export const portCookie = 'skep_port';

const bearer = /^Bearer +(\S+) *$/i;

/** The key in the headers of a request; null if there is none. */
export function keyOf(request: IncomingMessage): string | null {
  return text(headerOf(request, 'x-session-api-key')) ?? bearerOf(request);
}

/** The credential in `Authorization: Bearer`; null if there is none. */
export function bearerOf(request: IncomingMessage): string | null {
  return bearer.exec(headerOf(request, 'authorization') ?? '')?.[1] ?? null;
}

function text(value: string | null): string | null {
  return value === null || value.trim() === '' ? null : value;
}

/** The tokens in the cookies of a request. A page may have set some beside the right one. */
export function cookieTokens({ headers }: IncomingMessage): readonly string[] {
  return (headers.cookie ?? '').split(';').flatMap((pair) => {
    const [name = '', value = ''] = pair.trim().split('=');
    return name === portCookie && value !== '' ? [value] : [];
  });
}

/** The cookies that a sandbox gets; undefined if there is none. */
export function passedCookies(cookies: string | undefined): string | undefined {
  const kept = (cookies ?? '').split(';').map((pair) => pair.trim()).filter((pair) => pair !== '' && !isOwnCookie(pair));
  return kept.length === 0 ? undefined : kept.join('; ');
}

/** Returns true if the cookie bears a name of Skep's. A cookie without a name is sent as its value, which could be such a pair. */
export function isOwnCookie(pair: string): boolean {
  return pair.replace(/^[\s=]*/, '').toLowerCase().replace(/^__(?:host|secure)-/, '').startsWith(ownCookiePrefix);
}

/**
 * Returns true if a browser may use a cookie for this request: it navigates, or the page is of the same origin. Pages on other ports of
 * the host count as the same site for a browser, which therefore sends them the cookie.
 */
export function mayUseCookie(request: IncomingMessage, publicUrl: string): boolean {
  const { origin, host } = request.headers;
  const site = headerOf(request, 'sec-fetch-site');
  const isNavigation = headerOf(request, 'sec-fetch-mode') === 'navigate' && (request.method === 'GET' || request.method === 'HEAD');
  if (isNavigation) return true;
  if (site !== null && site !== 'same-origin' && site !== 'none') return false;
  if (origin === undefined) return true;
  const originHost = URL.parse(origin)?.host;
  return originHost !== undefined && (originHost === host?.toLowerCase() || originHost === URL.parse(publicUrl)?.host);
}
