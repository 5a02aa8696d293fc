import { BadRequest, type Exchange } from './request.ts';

export interface Paging {
  readonly page: number;
  readonly perPage: number;
}

/** GitLab silently reduces a page size that is too large. */
export function pagingOf({ query }: Exchange): Paging {
  const [page, perPage] = [query.number('page', 1), query.number('per_page', 20)];
  if (page < 1 || perPage < 1 || perPage > 100) throw new BadRequest('page or per_page is out of bounds');
  return { page, perPage };
}

/** The headers of a numbered page. Without a total, which commits don't have. */
export function pageHeaders(exchange: Exchange, { page, perPage }: Paging, hasNext: boolean): Record<string, string> {
  const link = (number: number, relation: string): string => `<${linkTo(exchange, { page: String(number) })}>; rel="${relation}"`;
  const links = [...(hasNext ? [link(page + 1, 'next')] : []), link(1, 'first'), ...(page > 1 ? [link(page - 1, 'prev')] : [])];
  return {
    link: links.join(', '),
    'x-page': String(page),
    'x-per-page': String(perPage),
    'x-next-page': hasNext ? String(page + 1) : '',
    'x-prev-page': page > 1 ? String(page - 1) : '',
  };
}

/** The URL of the request, with some other parameters. */
export function linkTo({ url, base }: Exchange, parameters: Readonly<Record<string, string>>): string {
  const target = new URL(`${new URL(base).origin}${url.pathname}${url.search}`);
  for (const [name, value] of Object.entries(parameters)) target.searchParams.set(name, value);
  return target.href;
}
