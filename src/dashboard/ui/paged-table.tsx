import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { useResource } from '../live-resources.ts';
import { Button, Table, type TableProps } from './controls.tsx';
import { Failed, Loaded } from './page.tsx';

interface PageOf<T> {
  readonly items: readonly T[];
  readonly next_page_id: string | null;
}

interface PageQuery {
  readonly page_id?: string;
  readonly limit: number;
}

interface PagedTableProps<T> extends Omit<TableProps<T>, 'items'> {
  readonly read: (page: PageQuery, signal: AbortSignal) => Promise<PageOf<T>>;
  /** Causes a reload when it changes. */
  readonly filters: readonly unknown[];
  readonly isRelevant: (event: api.Event) => boolean;
  /** Shown if the table is empty. */
  readonly empty: ComponentChildren;
}

/** A table of the first pages of a listing; the user can load more. */
export function PagedTable<T>({ read, filters, isRelevant, empty, ...table }: PagedTableProps<T>) {
  const [count, setCount] = useState(1);
  const resource = useResource(async (signal) => {
    const items: T[] = [];
    let next: string | null = null;
    for (let page = 0; page < count && (page === 0 || next !== null); page += 1) {
      const answer: PageOf<T> = await read({ limit: 100, ...(next !== null && { page_id: next }) }, signal);
      items.push(...answer.items);
      next = answer.next_page_id;
    }
    return { items, hasMore: next !== null, filters, count };
  }, [...filters, count], isRelevant);
  const { data, error, reload } = resource;
  const isStale = data !== null && filters.some((one, index) => one !== data.filters[index]);
  return (
    <Loaded resource={isStale && error !== null ? { ...resource, data: null } : resource}>
      {({ items, hasMore, count: shown }) => {
        if (items.length === 0 && !isStale) return empty;
        const isGrowing = shown !== count;
        return (
          <>
            <Table {...table} items={items} isStale={isStale || (isGrowing && error === null)} />
            {isGrowing && error !== null ? <Failed error={error} onRetry={reload} /> : hasMore && (
              <p class="more"><Button disabled={isStale || isGrowing} onClick={() => setCount(count + 1)}>Show more</Button></p>
            )}
          </>
        );
      }}
    </Loaded>
  );
}
