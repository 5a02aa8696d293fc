import type { HostPage, HostPageRequest } from '../../ports/git-provider.ts';

/** The number of items per page of a host: the maximum of GitHub and GitLab. */
export const itemsPerHostPage = 100;

interface NumberedPage<T> {
  readonly items: readonly T[];
  readonly hasNext: boolean;
}

/**
 * Serves pages of any size from a host's numbered pages, with one request each. A page ends at the end of the host's page, which must have
 * at most `itemsPerHostPage` items.
 */
export async function pageOfHost<T>(
  { after, limit }: HostPageRequest, read: (page: number) => Promise<NumberedPage<T>>,
): Promise<HostPage<T>> {
  const begin = after === null ? 0 : Number(after);
  const page = Math.floor(begin / itemsPerHostPage);
  const { items, hasNext } = await read(page + 1);
  const from = begin % itemsPerHostPage;
  const shown = items.slice(from, from + limit);
  if (from + limit < items.length) return { items: shown, next: String(begin + limit) };
  return { items: shown, next: hasNext ? String((page + 1) * itemsPerHostPage) : null };
}
