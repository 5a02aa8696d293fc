import { z } from 'zod';
import type { Page, PageKey, PageRequest } from '../../domain/page.ts';
import { wholeNumber } from './common-schemas.ts';
import type { RequestContext } from './request-context.ts';
import { invalidRequest } from './request-input.ts';

/** The query of every listing. The handler decodes `page_id`, because only it knows the listing and its order. */
export const pageQuery = {
  page_id: z
    .string()
    // A token for repositories or branches can contain a long name.
    .max(8192)
    .optional()
    .meta({ description: 'The `next_page_id` of the previous page of the same list in the same order.' }),
  limit: wholeNumber(1, 100).default(100).meta({ description: 'The maximum number of items.', override: { default: 100 } }),
};

export function pageSchema<T extends z.ZodType>(item: T, id: string) {
  return z
    .object({
      items: z.array(item),
      next_page_id: z.string().nullable().meta({ description: 'Send it as `page_id` to get the next page. Null on the last page.' }),
    })
    .meta({ id });
}

interface PageQuery {
  readonly page_id?: string | undefined;
  readonly limit: number;
}

/**
 * Returns the requested page of a listing. `listing` names the listing and its order. Throws `invalid_request` for a token of another
 * listing.
 */
export async function readPage<T, R>(
  { http: { cipher } }: RequestContext, listing: string, { page_id: token, limit }: PageQuery,
  read: (request: PageRequest) => Promise<Page<T>>, present: (item: T) => R,
) {
  const after = token === undefined ? null : parseToken(cipher.decrypt(token), listing);
  const { items, next } = await read({ after, limit });
  return {
    items: items.map((item) => present(item)),
    next_page_id: next === null ? null : cipher.encrypt(JSON.stringify([listing, next.value, next.id])),
  };
}

const tokenContent = z.tuple([z.string(), z.int(), z.string()]);

function parseToken(opened: string | null, listing: string): PageKey {
  if (opened === null) throw unknownPage();
  const [madeFor, value, id] = tokenContent.parse(JSON.parse(opened));
  if (madeFor !== listing) throw unknownPage();
  return { value, id };
}

export function unknownPage() {
  return invalidRequest(['query', 'page_id'], 'must be the next_page_id of a page of the same list in the same order', 'page_id');
}
