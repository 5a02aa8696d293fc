import { sql } from 'kysely';
import { foldTitle, type ConversationSortOrder } from '../../../domain/conversation.ts';
import type { PageKey, PageRequest } from '../../../domain/page.ts';
import type { ConversationFilter } from '../../../ports/conversation-store.ts';
import { conversationColumns } from './conversation-row.ts';
import { afterAll, beforeAll, membersOf, notByIndex } from './lists.ts';
import { build, type Statement, statement } from './statement.ts';
import type { ConversationRow } from './tables.ts';

/** The values of a search. The page lies between the places `low` and `high`, neither of them included. */
interface SearchValues {
  owner: string;
  title: string;
  sandbox: string;
  ids: string;
  lowValue: number;
  lowId: string;
  highValue: number;
  highId: string;
  /** Bounds of the time that is not sorted by. */
  otherFrom: number;
  otherBefore: number;
  limit: number;
}

/** How the rows are found: by the owner's index, which is in the order of the page, or by the few that a filter names. */
interface Shape {
  readonly order: ConversationSortOrder;
  readonly byIds: boolean;
  readonly bySandbox: boolean;
}

interface Sorting {
  readonly column: 'created_at' | 'updated_at';
  readonly other: 'created_at' | 'updated_at';
  readonly direction: 'asc' | 'desc';
}

const sortings: Readonly<Record<ConversationSortOrder, Sorting>> = {
  CREATED_AT: { column: 'created_at', other: 'updated_at', direction: 'asc' },
  CREATED_AT_DESC: { column: 'created_at', other: 'updated_at', direction: 'desc' },
  UPDATED_AT: { column: 'updated_at', other: 'created_at', direction: 'asc' },
  UPDATED_AT_DESC: { column: 'updated_at', other: 'created_at', direction: 'desc' },
};

function searchStatement({ order, byIds, bySandbox }: Shape): Statement<SearchValues, ConversationRow> {
  const { column, other, direction } = sortings[order];
  return statement((p: SearchValues) =>
    build
      .selectFrom('conversations')
      .select(conversationColumns)
      .where(byIds || bySandbox ? notByIndex('owner_id') : 'owner_id', '=', p.owner)
      .where('deleted_at', 'is', null)
      .$if(byIds, (query) => query.where('id', 'in', membersOf(p.ids)))
      .$if(bySandbox, (query) => query.where(byIds ? notByIndex('sandbox_id') : 'sandbox_id', '=', p.sandbox))
      .where((eb) => eb(eb.refTuple(column, 'id'), '>', eb.tuple(p.lowValue, p.lowId)))
      .where((eb) => eb(eb.refTuple(column, 'id'), '<', eb.tuple(p.highValue, p.highId)))
      .where(notByIndex(other), '>=', sql<string>`${p.otherFrom}`)
      .where(notByIndex(other), '<', sql<string>`${p.otherBefore}`)
      .where(sql<number>`instr(title_folded, ${p.title})`, '>', sql.lit(0))
      .orderBy(column, direction)
      .orderBy('id', direction)
      .limit(p.limit),
  );
}

const statements = new Map<string, Statement<SearchValues, ConversationRow>>();

/** The statement for the filter and the order; there are sixteen of them at most. */
export function searchFor(filter: ConversationFilter, order: ConversationSortOrder): Statement<SearchValues, ConversationRow> {
  const shape: Shape = { order, byIds: filter.ids !== undefined, bySandbox: filter.sandboxId !== undefined };
  const key = `${order} ${shape.byIds} ${shape.bySandbox}`;
  const known = statements.get(key);
  if (known !== undefined) return known;
  const made = searchStatement(shape);
  statements.set(key, made);
  return made;
}

export function searchValues(
  owner: string,
  filter: ConversationFilter,
  order: ConversationSortOrder,
  { after, limit }: PageRequest,
): SearchValues {
  const { column, direction } = sortings[order];
  const created = { from: filter.createdFrom, before: filter.createdBefore };
  const updated = { from: filter.updatedFrom, before: filter.updatedBefore };
  const [sorted, other] = column === 'created_at' ? [created, updated] : [updated, created];
  const low = later(placeOf(sorted.from) ?? beforeAll, direction === 'asc' ? after : null);
  const high = earlier(placeOf(sorted.before) ?? afterAll, direction === 'desc' ? after : null);
  return {
    owner,
    title: foldTitle(filter.titleContains ?? ''),
    sandbox: filter.sandboxId ?? '',
    ids: JSON.stringify(filter.ids ?? []),
    lowValue: low.value,
    lowId: low.id,
    highValue: high.value,
    highId: high.id,
    otherFrom: other.from ?? beforeAll.value,
    otherBefore: other.before ?? afterAll.value,
    limit: limit + 1,
  };
}

export function pageKeyFor(order: ConversationSortOrder): (row: { createdAt: number; updatedAt: number; id: string }) => PageKey {
  return sortings[order].column === 'created_at'
    ? ({ createdAt, id }) => ({ value: createdAt, id })
    : ({ updatedAt, id }) => ({ value: updatedAt, id });
}

/** The place before every row of that time: no id is empty. */
function placeOf(time: number | undefined): PageKey | null {
  return time === undefined ? null : { value: time, id: '' };
}

function later(a: PageKey, b: PageKey | null): PageKey {
  return b !== null && isBefore(a, b) ? b : a;
}

function earlier(a: PageKey, b: PageKey | null): PageKey {
  return b !== null && isBefore(b, a) ? b : a;
}

function isBefore(a: PageKey, b: PageKey): boolean {
  return a.value === b.value ? a.id < b.id : a.value < b.value;
}
