import { z } from 'zod';
import type { Page, PageKey, PageRequest } from '../../domain/page.ts';
import { wholeNumber } from './common-schemas.ts';
import type { RequestContext } from './request-context.ts';
import { invalidRequest } from './request-input.ts';
import { createSealedTokens } from './sealed-tokens.ts';

/** The query of every listing. The handler decodes `page_id`, because only it knows the listing and its order. */
export const pageQuery = {
  page_id: z
    .string()
    // A token for repositories or branches can contain a long name.
    .max(8192)
    .optional()
    .describe('The `next_page_id` of the previous page of the same list in the same order.'),
  limit: wholeNumber(1, 100).default(100).meta({ description: 'The maximum number of items.', override: { default: 100 } }),
};

export function pageSchema<T extends z.ZodType>(item: T, id: string) {
  return z
    .object({
      items: z.array(item),
      next_page_id: z.string().nullable().describe('Send it as `page_id` to get the next page. Null on the last page.'),
    })
    .meta({ id });
}

interface PageQuery {
  readonly page_id?: string | undefined;
  readonly limit: number;
}

/** Returns the requested page of a listing. `listing` and the failure are those of {@link pageRequestOf}. */
export async function readPage<T, R>(
  context: RequestContext, listing: string, query: PageQuery, read: (request: PageRequest) => Promise<Page<T>>, present: (item: T) => R,
) {
  return presentPage(context, listing, await read(pageRequestOf(context, listing, query)), present);
}

/** `listing` names the listing and its order. Throws `invalid_request` for a token of another listing. */
export function pageRequestOf(
  { http: { pageTokens } }: RequestContext, listing: string, { page_id: token, limit }: PageQuery,
): PageRequest {
  return { after: token === undefined ? null : keyIn(pageTokens.decode(token), listing), limit };
}

export function presentPage<T, R>(
  { http: { pageTokens } }: RequestContext, listing: string, { items, next }: Page<T>, present: (item: T) => R,
) {
  return {
    items: items.map((item) => present(item)),
    next_page_id: next === null ? null : pageTokens.encode([listing, next.value, next.id]),
  };
}

/** The listing, and the key of the last item of the page before. */
const tokenContent = z.tuple([z.string(), z.int(), z.string()]);

export const createPageTokens = (secret: string) => createSealedTokens(secret, tokenContent);

function keyIn(content: z.output<typeof tokenContent> | null, listing: string): PageKey {
  const [madeFor, value, id] = content ?? [];
  if (madeFor !== listing || value === undefined || id === undefined) throw unknownPage();
  return { value, id };
}

export function unknownPage() {
  return invalidRequest(['query', 'page_id'], 'must be the next_page_id of a page of the same list in the same order', 'page_id');
}
