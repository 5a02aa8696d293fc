export interface Page<T, Key = PageKey> {
  readonly items: readonly T[];
  /** Where the next page begins; null on the last page. */
  readonly next: Key | null;
}

/** Paging by key shows every row that exists all the time exactly once, even if others are created or deleted. The id breaks ties. */
export interface PageKey {
  readonly value: number;
  readonly id: string;
}

export interface PageRequest {
  readonly after: PageKey | null;
  /** 1 to 100. */
  readonly limit: number;
}

/** Returns the page of `limit + 1` fetched rows. */
export function pageOf<T, Key>(rows: readonly T[], limit: number, keyOf: (row: T) => Key): Page<T, Key> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? keyOf(last) : null };
}
