import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { asFailure, unavailable } from './sqlite-error.ts';
import { rowsOf, type Statement } from './statement.ts';

/** One open database. Everything is synchronous, and fails with `store_unavailable`. */
export interface Connection {
  all<P extends object, Row>(statement: Statement<P, Row>, values: P): Row[];
  get<P extends object, Row>(statement: Statement<P, Row>, values: P): Row | undefined;
  /** Answers with the number of rows that it changed. */
  run<P extends object>(statement: Statement<P, unknown>, values: P): number;
  /** Makes all of the work or nothing. Holds the only write lock from the beginning, so what it read stays true. */
  transaction<T>(work: () => T): T;
  /** A number that is another one when another connection, of any process, has written since it was asked for last. */
  version(): number;
  readonly database: DatabaseSync;
  /** Idempotent. */
  close(): void;
}

/** A commit that was answered is on the disk: the log is synced with each one. */
const settings = `
  PRAGMA synchronous = FULL;
  PRAGMA fullfsync = ON;
  PRAGMA checkpoint_fullfsync = ON;
  PRAGMA foreign_keys = ON;
  PRAGMA trusted_schema = OFF;
  PRAGMA journal_size_limit = 67108864;
`;

/** Opens a database that exists. `busyTimeoutMs` is how long a write waits for one of another process. */
export function openConnection(path: string | URL, busyTimeoutMs: number, { readOnly = false } = {}): Connection {
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs, readOnly });
  try {
    database.exec(settings);
  } catch (error) {
    database.close();
    throw error;
  }
  return connectionOf(database);
}

function connectionOf(database: DatabaseSync): Connection {
  const prepared = new WeakMap<object, StatementSync>();
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const rollback = database.prepare('ROLLBACK');
  const dataVersion = database.prepare('PRAGMA data_version');

  function prepare(statement: Statement<never, unknown>): StatementSync {
    const known = prepared.get(statement);
    if (known !== undefined) return known;
    const made = database.prepare(statement.sql);
    prepared.set(statement, made);
    return made;
  }

  function guarded<T>(work: () => T): T {
    if (!database.isOpen) throw unavailable('it is closed');
    try {
      return work();
    } catch (error) {
      throw asFailure(error);
    }
  }

  return {
    database,
    all: (statement, values) => guarded(() => rowsOf(statement, prepare(statement).all(...statement.arguments(values)))),
    get: (statement, values) =>
      guarded(() => {
        const row = prepare(statement).get(...statement.arguments(values));
        return row === undefined ? undefined : rowsOf(statement, [row])[0];
      }),
    run: (statement, values) =>
      guarded(() => Number(prepare(statement).run(...statement.arguments(values)).changes)),
    version: () => guarded(() => Number(dataVersion.get()?.['data_version'])),
    transaction: (work) =>
      guarded(() => {
        begin.run();
        try {
          const result = work();
          commit.run();
          return result;
        } catch (error) {
          // SQLite itself rolls back after some errors, a full disk for instance.
          if (database.isTransaction) rollback.run();
          throw error;
        }
      }),
    close() {
      if (database.isOpen) database.close();
    },
  };
}
