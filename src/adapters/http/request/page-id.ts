import { z } from 'zod';
import type { PageKey } from '../../../domain/page.ts';
import { invalid } from './problems.ts';

const pageId = z.tuple([z.string(), z.int(), z.string().min(1).max(255)]);

/** The key of a page as an opaque word, good for one listing in one order only. */
export function encodePageId(listing: string, { value, id }: PageKey): string {
  return Buffer.from(JSON.stringify([listing, value, id])).toString('base64url');
}

/**
 * The key that {@link encodePageId} made for this listing. Any other word is refused, also one that means the same in
 * another spelling. Failure: `invalid_request`.
 */
export function decodePageId(listing: string, text: string): PageKey {
  const parsed = pageId.safeParse(jsonOf(Buffer.from(text, 'base64url').toString()));
  if (parsed.success) {
    const [madeFor, value, id] = parsed.data;
    if (madeFor === listing && encodePageId(listing, { value, id }) === text) return { value, id };
  }
  throw unknownPage();
}

export function unknownPage() {
  return invalid(['query', 'page_id'], 'must be the next_page_id of a page of this listing in this order', 'page_id');
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
