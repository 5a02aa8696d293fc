interface PageOf<T> {
  readonly items: readonly T[];
  readonly next_page_id: string | null;
}

interface PageQuery {
  readonly page_id?: string;
  readonly limit: number;
}

interface Taken<T> {
  readonly items: readonly T[];
  readonly hasMore: boolean;
}

/** Reads the first pages of a listing. */
export async function takePages<T>(count: number, read: (page: PageQuery) => Promise<PageOf<T>>): Promise<Taken<T>> {
  const items: T[] = [];
  let next: string | null = null;
  for (let page = 0; page < count && (page === 0 || next !== null); page += 1) {
    const answer: PageOf<T> = await read({ limit: 100, ...(next !== null && { page_id: next }) });
    items.push(...answer.items);
    next = answer.next_page_id;
  }
  return { items, hasMore: next !== null };
}
