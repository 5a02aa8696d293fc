import { z } from 'zod';
import type { Page, PageKey } from '../../domain/page.ts';
import { invalidRequest } from './request-input.ts';

const wholeNumber = /^-?\d{1,9}$/;

/** The query of every listing; the handler decodes `page_id`, since it knows the listing and its order. */
export const pageQuery = {
  page_id: z
    .string()
    .max(512)
    .optional()
    .meta({ description: 'The `next_page_id` of the page before, for the same listing in the same order.' }),
  limit: z
    .preprocess(
      (value) => (typeof value === 'string' && wholeNumber.test(value) ? Number(value) : value),
      z.int('must be a whole number from 1 to 100').min(1, 'must be at least 1').max(100, 'must be at most 100'),
    )
    .default(100)
    .meta({ description: 'How many items at most.', override: { default: 100 } }),
};

/** The schema of a page of the items. */
export function pageSchema<T extends z.ZodType>(item: T, id: string) {
  return z
    .object({
      items: z.array(item),
      next_page_id: z.string().nullable().meta({ description: 'Send it as `page_id` for the next page; null on the last one.' }),
    })
    .meta({ id });
}

/** A page as it is sent; `listing` names the listing and its order. */
export function presentPage<T, R>({ items, next }: Page<T>, listing: string, present: (item: T) => R) {
  return { items: items.map(present), next_page_id: next === null ? null : encodePageToken(listing, next) };
}

const tokenContent = z.tuple([z.string(), z.int(), z.string().min(1).max(255)]);

/** An opaque token for the key of a page, good for one listing in one order only. */
export function encodePageToken(listing: string, { value, id }: PageKey): string {
  return Buffer.from(JSON.stringify([listing, value, id])).toString('base64url');
}

/**
 * The key of the page that the query asks for; null for the first page. A token that {@link encodePageToken} did not encode for this
 * listing is refused, also one that means the same in another spelling. Throws `invalid_request`.
 */
export function pageKeyOf(listing: string, { page_id: token }: { readonly page_id?: string | undefined }): PageKey | null {
  if (token === undefined) return null;
  try {
    const [madeFor, value, id] = tokenContent.parse(JSON.parse(Buffer.from(token, 'base64url').toString()));
    if (madeFor === listing && encodePageToken(listing, { value, id }) === token) return { value, id };
  } catch {
    // It is no token at all.
  }
  throw unknownPage();
}

export function unknownPage() {
  return invalidRequest(['query', 'page_id'], 'must be the next_page_id of a page of this listing in this order', 'page_id');
}
