import { type RawBuilder, sql } from 'kysely';
import type { PageKey } from '../../../domain/page.ts';

/** The members of a JSON array, so that a statement takes any number of ids as one value. */
export function membersOf(json: string): RawBuilder<string> {
  return sql<string>`(select value from json_each(${json}))`;
}

/**
 * The column, kept out of the choice of an index. SQLite has no statistics to choose by, so where a filter names few
 * rows the statement says that they are to be found by it, and not by walking through all of an owner's.
 */
export function notByIndex(column: string): RawBuilder<string> {
  return sql<string>`+${sql.ref(column)}`;
}

/** Places before and after every row: a page always lies between two places, which keeps it one statement. */
export const beforeAll: PageKey = { value: Number.MIN_SAFE_INTEGER, id: '' };
export const afterAll: PageKey = { value: Number.MAX_SAFE_INTEGER, id: '' };
