import type { SQLInputValue } from 'node:sqlite';
import { type Compilable, DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely';
import type { Tables } from './tables.ts';

/**
 * Writes and types the statements; it executes nothing. What `node:sqlite` does is synchronous, so a transaction here is
 * one synchronous function that no other call can get into, which kysely's own executor can't promise on one connection.
 */
export const build = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
});

/** A statement whose text is made once; its values, named by `P`, come with each run. `Row` is what it answers with. */
export interface Statement<P extends object, Row> {
  readonly sql: string;
  arguments(values: P): SQLInputValue[];
  /** Never there: it only carries the type. */
  readonly row?: Row;
}

/** Compiles what the callback builds. Wherever it uses a member of `p`, the run's value of that name goes. */
export function statement<P extends object, Row = never>(write: (p: P) => Compilable<Row>): Statement<P, Row> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the builder checks its types and passes it on unread
  const p = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) }) as P;
  const { sql, parameters } = write(p).compile();
  const readers = parameters.map(readerOf);
  return { sql, arguments: (values) => readers.map((read) => read(values)) };
}

/** The values by which a statement writes all these columns: `{ id: p.id, name: p.name }`. */
export function pick<P extends object, K extends keyof P>(p: P, columns: readonly K[]): Pick<P, K> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- fromEntries forgets the keys
  return Object.fromEntries(columns.map((column) => [column, p[column]])) as Pick<P, K>;
}

/** The rows as what they are: STRICT tables and the builder's types together say so, the driver's own type does not. */
export function rowsOf<Row>(_statement: Statement<never, Row>, rows: readonly object[]): Row[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as the docstring says
  return rows as Row[];
}

class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

function readerOf(parameter: unknown): (values: object) => SQLInputValue {
  if (parameter instanceof Placeholder) {
    const { name } = parameter;
    return (values) => inputOf(Reflect.get(values, name));
  }
  const constant = inputOf(parameter);
  return () => constant;
}

function inputOf(value: unknown): SQLInputValue {
  if (value === null || typeof value === 'string' || typeof value === 'number') return value;
  throw new TypeError(`a statement can't take a value of type ${typeof value}`);
}
