import { type RawBuilder, sql } from 'kysely';
import { type Conversation, type ConversationSortOrder, foldTitle } from '../../domain/conversation.ts';
import { type Page, pageOf, type PageRequest } from '../../domain/page.ts';
import type { ConversationFilter } from '../../ports/conversation-store.ts';
import { conversationOf } from './conversation-row.ts';
import type { Db } from './database.ts';

interface Sorting {
  readonly column: 'created_at' | 'updated_at';
  readonly field: 'createdAt' | 'updatedAt';
  readonly direction: 'asc' | 'desc';
}

const sortings: Readonly<Record<ConversationSortOrder, Sorting>> = {
  CREATED_AT: { column: 'created_at', field: 'createdAt', direction: 'asc' },
  CREATED_AT_DESC: { column: 'created_at', field: 'createdAt', direction: 'desc' },
  UPDATED_AT: { column: 'updated_at', field: 'updatedAt', direction: 'asc' },
  UPDATED_AT_DESC: { column: 'updated_at', field: 'updatedAt', direction: 'desc' },
};

/**
 * Searches in the index of the owner and the sorted time, which has the rows in the order of the page. If the filter names
 * ids or a sandbox, searches by those instead, since they are few.
 */
export async function searchConversations(
  db: Db,
  ownerId: string,
  filter: ConversationFilter,
  order: ConversationSortOrder,
  { after, limit }: PageRequest,
): Promise<Page<Conversation>> {
  const { ids, sandboxId, titleContains } = filter;
  if (ids?.length === 0) return { items: [], next: null };
  const { column, field, direction } = sortings[order];
  const byOwner = ids === undefined && sandboxId === undefined;
  let found = db.selectFrom('conversations').selectAll().where('deleted_at', 'is', null);
  found = found.where(byOwner ? 'owner_id' : notByIndex('owner_id'), '=', ownerId);
  if (ids !== undefined) found = found.where('id', 'in', ids);
  if (sandboxId !== undefined) found = found.where(ids === undefined ? 'sandbox_id' : notByIndex('sandbox_id'), '=', sandboxId);
  if (titleContains !== undefined) found = found.where(sql<number>`instr(title_folded, ${foldTitle(titleContains)})`, '>', sql.lit(0));
  for (const [time, operator, bound] of boundsOf(filter)) {
    if (bound === undefined) continue;
    // The index is searched by one lower and one upper bound, and the place where the page begins is the narrower one.
    const isNarrowest = time === column && (after === null || (operator === '>=') !== (direction === 'asc'));
    found = found.where(isNarrowest ? time : timeNotByIndex(time), operator, bound);
  }
  if (after !== null) {
    found = found.where((eb) => eb(eb.refTuple(column, 'id'), direction === 'asc' ? '>' : '<', eb.tuple(after.value, after.id)));
  }
  const rows = await found.orderBy(column, direction).orderBy('id', direction).limit(limit + 1).execute();
  return pageOf(rows.map(conversationOf), limit, (row) => ({ value: row[field], id: row.id }));
}

function boundsOf({ createdFrom, createdBefore, updatedFrom, updatedBefore }: ConversationFilter) {
  return [
    ['created_at', '>=', createdFrom],
    ['created_at', '<', createdBefore],
    ['updated_at', '>=', updatedFrom],
    ['updated_at', '<', updatedBefore],
  ] as const;
}

/** The column as an expression, which no index can be searched by: SQLite has no statistics to choose the better index with. */
function notByIndex(column: 'owner_id' | 'sandbox_id'): RawBuilder<string> {
  return sql<string>`(${sql.ref(column)} || '')`;
}

function timeNotByIndex(column: 'created_at' | 'updated_at'): RawBuilder<number> {
  return sql<number>`(${sql.ref(column)} + 0)`;
}
