import type { z } from 'zod';
import type { Answer } from './answer.ts';
import { failed } from './failures.ts';
import { parseJson } from './parse.ts';
import type { Call, Transport } from './transport.ts';

const redirects: readonly number[] = [301, 302, 307, 308];
const maxRedirects = 3;

/** Gets an answer. Of a renamed repository the host sends on to where it is now. */
export async function get(transport: Transport, baseUrl: string, call: Call, signal: AbortSignal): Promise<Answer> {
  let next: Call = { ...call, expects: [...redirects, ...(call.expects ?? [])] };
  for (let followed = 0; followed <= maxRedirects; followed += 1) {
    const answer = await transport.send(next, signal);
    if (!redirects.includes(answer.status)) return answer;
    const location = sameOrigin(baseUrl, answer.headers['location']);
    const { parameters: _sentBefore, ...rest } = next;
    next = { ...rest, route: `GET ${location}` };
  }
  throw failed('it redirects in circles');
}

export async function getJson<T>(
  transport: Transport,
  baseUrl: string,
  call: Call & { readonly what: string },
  schema: z.ZodType<T>,
  signal: AbortSignal,
): Promise<T> {
  const { text } = await get(transport, baseUrl, call, signal);
  return parseJson(schema, text, call.what);
}

/** The URL, unless it leads to another origin, which must not get the credential. */
export function sameOrigin(baseUrl: string, location: string | undefined): string {
  const url = location === undefined || location === '' ? null : URL.parse(location, baseUrl);
  if (url === null || url.origin !== new URL(baseUrl).origin || url.username !== '' || url.password !== '') {
    throw failed('it leads to another origin, which is not followed');
  }
  // What Octokit would take for a place to put a parameter in.
  return url.href.replaceAll(/[{}]/gu, encodeURIComponent).replaceAll(/:(?=[a-z])/gu, '%3A');
}

/** The number of the last page, by the `Link` header; 1 where there is no other. */
export function lastPage(baseUrl: string, link: string | undefined): number {
  const target = /<([^<>]*)>\s*;[^,]*\brel="?last"?/u.exec(link ?? '')?.[1];
  if (target === undefined) return 1;
  const page = URL.parse(sameOrigin(baseUrl, target))?.searchParams.get('page') ?? '';
  if (!/^[1-9]\d{0,8}$/u.test(page)) throw failed('its answer has a link to a page that has no number');
  return Number(page);
}
