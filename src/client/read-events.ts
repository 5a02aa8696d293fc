import { z } from 'zod';
import type { Api } from './api.ts';
import { pageOf, shownEvent, type ShownEvent } from './schema.ts';

const page = pageOf(z.looseObject({ id: z.int() }));

/**
 * Reads the log at the path to its present end, oldest first; answers with the id of the last event, 0 where there is none.
 * Fails with a `ClientError`.
 */
export async function readEvents(api: Api, path: string, take: (event: ShownEvent) => Promise<void>): Promise<number> {
  let last = 0;
  let next: string | null = null;
  do {
    const { items, next_page_id }: z.output<typeof page> = await api.get(next === null ? path : `${path}?page_id=${encodeURIComponent(next)}`, page);
    for (const item of items) {
      last = item.id;
      const event = shownEvent.safeParse(item);
      if (event.success) await take(event.data);
    }
    next = next_page_id;
  } while (next !== null);
  return last;
}
