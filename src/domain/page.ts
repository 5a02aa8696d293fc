/** One page of a listing. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Where the next page begins; null on the last one. */
  readonly next: PageKey | null;
}

/**
 * The place of a row in its order: the value that it is sorted by, and its id, which breaks ties. Paging by key, not by
 * offset, shows a row that exists throughout exactly once, whatever is created or deleted meanwhile.
 */
export interface PageKey {
  readonly value: number;
  readonly id: string;
}

/** Which part of a listing is wanted. */
export interface PageRequest {
  readonly after: PageKey | null;
  /** 1 to 100. */
  readonly limit: number;
}

/** Cuts `limit + 1` fetched rows into a page. */
export function pageOf<T>(rows: readonly T[], limit: number, keyOf: (row: T) => PageKey): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? keyOf(last) : null };
}
