import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import {
  CompiledQuery, type DatabaseConnection, type Dialect, type Driver, type QueryResult, SqliteAdapter, SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { storeUnavailable } from '../database.ts';
import { asFailure, isBusy } from './sqlite-error.ts';

const busyPollMs = 1;

/** Statements differ in their number of ids, so there are a few hundred. */
const maxStatements = 500;

/**
 * kysely's dialect over `node:sqlite`. The connection runs one query or transaction at a time, in order. If another connection blocks a
 * statement, it is tried again for `busyTimeoutMs`. Other queries run between the tries, so reads continue. Errors of SQLite become
 * `store_unavailable`.
 */
export function createSqliteDialect(database: DatabaseSync, busyTimeoutMs: number): Dialect {
  // SQLite's own timeout would block this process, also if a transaction of this process holds the lock.
  database.exec('PRAGMA busy_timeout = 0');
  const connection = new SqliteConnection(database, busyTimeoutMs);
  const run = (sql: string): Promise<unknown> => connection.executeQuery(CompiledQuery.raw(sql));
  const driver: Driver = {
    init: async () => {},
    // Kysely calls this for each query and each transaction. Version 0.28 does not run them one after another itself.
    acquireConnection: async () => {
      await connection.acquire();
      return connection;
    },
    // IMMEDIATE takes the only write lock at once, so data that the transaction reads can't change before its end.
    beginTransaction: async () => void (await run('BEGIN IMMEDIATE')),
    commitTransaction: async () => void (await run('COMMIT')),
    rollbackTransaction: async () => {
      // SQLite itself rolls back after some errors, for example on a full disk.
      if (database.isOpen && database.isTransaction) database.exec('ROLLBACK');
    },
    releaseConnection: async () => connection.release(),
    destroy: async () => database.close(),
  };
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => driver,
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

interface Prepared {
  readonly statement: StatementSync;
  readonly returnsRows: boolean;
}

class SqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync;
  readonly #busyTimeoutMs: number;
  readonly #prepared = new Map<string, Prepared>();
  #lastHolder = Promise.resolve();
  #endHold = (): void => {};

  constructor(database: DatabaseSync, busyTimeoutMs: number) {
    this.#database = database;
    this.#busyTimeoutMs = busyTimeoutMs;
  }

  /** Waits until all earlier callers have released the connection. */
  async acquire(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#lastHolder;
    this.#lastHolder = promise;
    await before;
    this.#endHold = resolve;
  }

  release(): void {
    this.#endHold();
  }

  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    for (const start = performance.now(); ; await this.#waitForLock()) {
      if (!this.#database.isOpen) throw storeUnavailable({ code: 'closed' });
      try {
        return this.#execute<R>(sql, parameters);
      } catch (error) {
        const mayWait = isBusy(error) && !this.#database.isTransaction && performance.now() - start < this.#busyTimeoutMs;
        if (!mayWait) throw asFailure(error);
      }
    }
  }

  async #waitForLock(): Promise<void> {
    this.release();
    await setTimeout(busyPollMs);
    await this.acquire();
  }

  streamQuery(): never {
    throw new Error('the SQLite dialect does not stream');
  }

  #execute<R>(sql: string, parameters: readonly unknown[]): QueryResult<R> {
    const { statement, returnsRows } = this.#prepare(sql);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- node:sqlite refuses what it can't bind
    const values = parameters as SQLInputValue[];
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kysely derives the row type from the query
    if (returnsRows) return { rows: statement.all(...values) as R[] };
    const { changes, lastInsertRowid } = statement.run(...values);
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  }

  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(sql);
    const prepared = { statement, returnsRows: statement.columns().length > 0 };
    if (this.#prepared.size >= maxStatements) this.#prepared.clear();
    this.#prepared.set(sql, prepared);
    return prepared;
  }
}
