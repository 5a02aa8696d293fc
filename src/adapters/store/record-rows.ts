import {
  type Compilable, type CompiledQuery, type RawBuilder, type SelectQueryBuilder, sql, type UpdateQueryBuilder, type UpdateResult,
} from 'kysely';
import type { LimitReached } from '../../domain/admission-limits.ts';
import { camelCase, type SnakeCase, snakeCase } from '../shared/snake-case.ts';
import { type ClaimRow, type Database, type Db, storeUnavailable } from './database.ts';

/** A boolean is stored as 0 or 1, bytes as they are, another array or object as JSON text. */
type ColumnOf<T> = T extends string ? string : T extends boolean ? number : T extends Uint8Array ? T : T extends object ? string : T;

/** The row of a record: one column for each field, named in snake case. */
export type RowOf<T> = { [K in keyof T & string as SnakeCase<K>]: ColumnOf<T[K]> };

/** The readers of the columns whose type in the database is wider than the field's: enums, booleans and JSON. None gets null. */
type Readers<T, R> = {
  readonly [K in keyof T & string as ColumnOf<T[K]> extends T[K] ? never : K]: (
    column: NonNullable<ColumnOf<T[K]>>, row: R,
  ) => NonNullable<T[K]>;
};

type Reader<R> = (column: never, row: R) => unknown;

/**
 * Returns the row of the record. The columns are named after its fields, so a new field also needs a migration that adds its column. No
 * type demands that: without the column, every write fails.
 */
export function rowOf<T extends object>(record: T): RowOf<T> {
  const row = Object.entries(record).map(([name, value]: [string, unknown]) => [snakeCase(name), columnOf(value)]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type says the same as the code above
  return Object.fromEntries(row) as RowOf<T>;
}

function columnOf(value: unknown): unknown {
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'object' && value !== null && !(value instanceof Uint8Array) ? JSON.stringify(value) : value;
}

/**
 * Reads a column of JSON. Its form is not checked, because this program wrote it: a field that earlier versions did not write must be
 * optional, or the reader of its column must add it.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- it is the type of the field
export function json<T extends object>(text: string): T {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) throw new TypeError('it is no object or array');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `rowOf` wrote a value of this type
  return value as T;
}

export function flag(column: number): boolean {
  return column === 1;
}

/**
 * Returns a function that reads a row. Each field is named after its column. `computed` names the columns without a field. A null needs no
 * reader. If the reader of a column throws, the record is damaged: throws `store_unavailable`, with the id of the record if it has one.
 */
export function rowReader<T extends object, R extends RowOf<T>>(
  readers: Readers<T, R>,
  computed: readonly Exclude<keyof R, keyof RowOf<T>>[] = [],
): (row: R) => T {
  const leftOut = new Set<string | number | symbol>(computed);
  const readersByName = new Map<string, Reader<R>>(Object.entries(readers));
  let fields: { name: string; column: string; read: Reader<R> | undefined }[] | undefined;
  return (row) => {
    // Every row of a table has the same columns.
    fields ??= Object.keys(row).flatMap((column) => {
      const name = camelCase(column);
      return leftOut.has(column) ? [] : [{ name, column, read: readersByName.get(name) }];
    });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each reader is of its column's type
    const columns = row as Readonly<Record<string, never>>;
    const record: Record<string, unknown> = {};
    try {
      for (const { name, column, read } of fields) {
        const value = columns[column];
        record[name] = read === undefined || value === null ? value : read(value!, row);
      }
    } catch (error) {
      const recordId: unknown = columns['id'];
      throw storeUnavailable({ code: 'damaged', ...(typeof recordId === 'string' && { recordId }) }, error);
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the readers' type holds each field to its type
    return record as T;
  };
}

/**
 * Compiles a query once for each combination of given values: compiling takes as long as running it. `build` gets a placeholder for each
 * given value, so it may only pass it to the query or check that it is there, and must add no other parameter. Returns a function that
 * gets the rows.
 */
export function compiledOnce<R, V extends object>(db: Db, build: (placeholders: V) => Compilable<R>): (values: V) => Promise<R[]> {
  const compiled = new Map<string, CompiledQuery<R>>();
  return async (values) => {
    const given: Readonly<Record<string, unknown>> = Object(values);
    const names = Object.keys(given).filter((name) => given[name] !== undefined);
    const combination = names.join(' ');
    let query = compiled.get(combination);
    if (query === undefined) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kysely only keeps the placeholders, whatever their type
      query = build(Object.fromEntries(names.map((name) => [name, name])) as V).compile();
      compiled.set(combination, query);
    }
    return (await db.executeQuery<R>({ ...query, parameters: query.parameters.map((name) => given[String(name)]) })).rows;
  };
}

/** Returns a reader of a column with one of these values. The reader throws for any other text. */
export function enumReader<T extends string>(values: readonly T[]): (text: string) => T {
  const known = new Map<string, T>(values.map((one) => [one, one]));
  return (text) => {
    const found = known.get(text);
    if (found === undefined) throw new TypeError('it is no known value');
    return found;
  };
}

/** Returns the first limit that has no room for one more of its rows; null if there is room. */
export async function firstReached<T extends keyof Database>(
  trx: Db, rules: readonly (readonly [LimitReached['limit'], max: number | null, rows: SelectQueryBuilder<Database, T, object>])[],
): Promise<LimitReached | null> {
  for (const [limit, max, rows] of rules) if (max !== null && (await countUpTo(trx, rows, max)) >= max) return { limit, max };
  return null;
}

/** Counts the rows, at most up to the limit. */
export async function countUpTo<T extends keyof Database>(
  trx: Db, rows: SelectQueryBuilder<Database, T, object>, limit: number,
): Promise<number> {
  const counted = trx
    .selectFrom(rows.select((eb) => eb.lit(1).as('one')).limit(limit).as('rows'))
    .select((eb) => eb.fn.countAll<number>().as('count'));
  return (await counted.executeTakeFirstOrThrow()).count;
}

/** The column as an expression, so that SQLite uses no index on it. SQLite has no statistics to choose the better index. */
export function withoutIndex<T extends string | number>(column: string): RawBuilder<T> {
  return sql<T>`(+${sql.ref(column)})`;
}

/** Replaces the row if it is exactly one version older. Returns false if it is not. */
export async function replaceOlder<K extends keyof Database>(
  update: UpdateQueryBuilder<Database, K, K, UpdateResult>, { id, version }: { readonly id: string; readonly version: number },
): Promise<boolean> {
  const older = update.where(sql.ref<string>('id'), '=', id).where(sql.ref<number>('version'), '=', version - 1);
  return (await older.executeTakeFirstOrThrow()).numUpdatedRows === 1n;
}

/** Called with each record that a scan leaves out. */
export type DamageListener = (record: { readonly kind: ClaimRow['kind']; readonly id: string }) => void;

/**
 * Returns a function that returns records after the id, fewer than `limit` only at the end. It leaves out damaged ones, so that a sweep
 * still handles the others.
 */
export function scanOf<K extends keyof Database, R extends { readonly id: string }, T>(
  kind: ClaimRow['kind'], all: SelectQueryBuilder<Database, K, R>, read: (row: R) => T, onDamaged: DamageListener = () => {},
): (afterId: string | null, limit: number) => Promise<readonly T[]> {
  const id = sql.ref<string>('id');
  return async (afterId, limit) => {
    const records: T[] = [];
    for (let after = afterId ?? ''; ; ) {
      const missing = limit - records.length;
      const rows = await all.where(id, '>', after).orderBy(id).limit(missing).execute();
      for (const row of rows) {
        try {
          records.push(read(row));
        } catch {
          onDamaged({ kind, id: row.id });
        }
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < missing || records.length === limit) return records;
      after = last.id;
    }
  };
}
