import type { Page } from '../../../domain/page.ts';
import { encodePageId } from '../request/page-id.ts';

interface PresentedPage<R> {
  items: R[];
  next_page_id: string | null;
}

/**
 * Presents the pages of a kind of item. Records never change, so a page that a store answers with again, because nothing
 * was written since, is not presented again. One presenter is for the pages of one use case only.
 */
export function pagePresenter<T, R>(present: (item: T) => R): (page: Page<T>, listing: string) => PresentedPage<R> {
  const known = new WeakMap<Page<T>, { readonly listing: string; readonly presented: PresentedPage<R> }>();
  return (page, listing) => {
    const earlier = known.get(page);
    if (earlier?.listing === listing) return earlier.presented;
    const { items, next } = page;
    const presented = { items: items.map((item) => present(item)), next_page_id: next === null ? null : encodePageId(listing, next) };
    known.set(page, { listing, presented });
    return presented;
  };
}
