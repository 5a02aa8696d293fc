import type { HostPage, HostPageRequest } from '../../ports/git-provider.ts';

/** How many items the pages of a host have: the most that GitHub and GitLab give. */
export const itemsPerHostPage = 100;

export interface NumberedPage<T> {
  readonly items: readonly T[];
  readonly hasNext: boolean;
}

/** Serves pages of any size from the numbered pages of a host, with one request for each. A page ends where that of the host does. */
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
