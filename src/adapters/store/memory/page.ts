import { type Page, type PageKey, pageOf, type PageRequest } from '../../../domain/page.ts';

/** The page of the rows in the order of their keys. */
export function pageIn<T>(
  rows: readonly T[],
  keyOf: (row: T) => PageKey,
  direction: 'asc' | 'desc',
  { after, limit }: PageRequest,
): Page<T> {
  const sign = direction === 'asc' ? 1 : -1;
  const order = (a: PageKey, b: PageKey): number => sign * (compare(a.value, b.value) || compare(a.id, b.id));
  const following = rows
    .filter((row) => after === null || order(keyOf(row), after) > 0)
    .toSorted((a, b) => order(keyOf(a), keyOf(b)));
  return pageOf(following.slice(0, limit + 1), limit, keyOf);
}

/** The rows by id, from after the given one. */
export function scanOf<T extends { readonly id: string }>(rows: readonly T[], afterId: string | null, limit: number): T[] {
  return rows
    .filter(({ id }) => afterId === null || id > afterId)
    .toSorted((a, b) => compare(a.id, b.id))
    .slice(0, limit);
}

export function compare<V extends number | string>(a: V, b: V): number {
  return a < b ? -1 : Number(a > b);
}
