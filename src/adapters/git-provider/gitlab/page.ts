import type { Answer } from './answer.ts';
import { failed } from './failures.ts';
import type { HostUrl } from './host-url.ts';

/** A page of a list, and how to ask for the next one. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: PageName | null;
}

export type PageName = { readonly pageToken: string } | { readonly page: number };

/**
 * The name of the next page. Nobody follows the link itself; one that leads to another origin is refused all the same,
 * since what such a host says is not to be believed.
 */
export function nextPage({ headers }: Answer, host: HostUrl): PageName | null {
  const link = nextLink(headers.get('link') ?? '');
  if (link !== null && new URL(link).origin !== host.origin) {
    throw failed('its pages link to another origin; configure the URL that it has for itself');
  }
  const page = headers.get('x-next-page') ?? '';
  if (/^[1-9]\d{0,8}$/u.test(page)) return { page: Number(page) };
  const token = link === null ? null : new URL(link).searchParams.get('page_token');
  return token === null || token === '' ? null : { pageToken: token };
}

function nextLink(header: string): string | null {
  for (const [, url = '', relation = ''] of header.matchAll(/<([^>]*)>\s*;\s*rel="?([^",;]*)"?/gu)) {
    if (relation !== 'next') continue;
    if (!URL.canParse(url)) throw failed('its pages link to what is no URL');
    return url;
  }
  return null;
}
