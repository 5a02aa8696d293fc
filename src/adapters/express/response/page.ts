import type { Page } from '../../../domain/page.ts';
import { encodePageId } from '../request/page-id.ts';

/** A page of a listing as it is answered. */
export function presentPage<T, R>(
  { items, next }: Page<T>,
  listing: string,
  present: (item: T) => R,
): { items: R[]; next_page_id: string | null } {
  return { items: items.map(present), next_page_id: next === null ? null : encodePageId(listing, next) };
}
