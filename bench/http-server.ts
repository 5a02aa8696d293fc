import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, StatementSync } from 'node:sqlite';
import express from 'express';
import { pino } from 'pino';
import { createApiKeys } from '../src/adapters/auth/api-keys/index.ts';
import { createHttpServer } from '../src/adapters/http/index.ts';
import { createMemoryRuntime, MemoryEngine } from '../test/doubles/memory/index.ts';
import { createPinoLogger } from '../src/adapters/logger/pino-logger.ts';
import { createSqliteStore } from '../src/adapters/store/sqlite/index.ts';
import { createSkep } from '../src/composition/create-skep.ts';
import type { Listening } from './server-process.ts';

/** The SQL statement for a page of sandboxes, and its database file. */
export interface SearchQuery {
  readonly database: string;
  readonly sql: string;
  readonly values: readonly SQLInputValue[];
}

const path = '/api/v1/sandboxes/search';
const rows = 20;

/** Skep with everything that handles a request in a real deployment: store on disk, a key of the store, the log. */
async function serveSkep(): Promise<Listening & { readonly query: SearchQuery }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const destination = pino.destination({ dest: '/dev/null', sync: false });
  const store = await createSqliteStore({ dataDir });
  const skep = await createSkep({
    store,
    runtime: createMemoryRuntime(new MemoryEngine()),
    logger: createPinoLogger({ level: 'info', destination }),
    specs: [{ id: 'plain', command: ['serve'], ports: [{ name: 'AGENT_SERVER', port: 8000 }] }],
  });
  const { key, record } = await createApiKeys({ keys: store.apiKeys, clock: skep.clock, random: skep.random }).create({ name: 'bench' });
  for (let row = 0; row < rows; row += 1) await skep.sandboxes.start(record.userId, { specId: null });
  const search = () => skep.sandboxes.search(record.userId, {}, { after: null, limit: rows });
  // No start may change the page during the measurement.
  const statement = await statementOf(async () => {
    while ((await search()).items.some(({ status }) => status !== 'RUNNING')) await pause(5);
  });
  const server = await createHttpServer(skep, { port: 0, requestsPerMinute: 1_000_000_000 });
  process.once('disconnect', () => {
    void server
      .close()
      .then(() => skep.close())
      .then(() => store.close())
      .then(() => rm(dataDir, { recursive: true, force: true }));
  });
  return { url: `${server.url}${path}`, key, query: { database: join(dataDir, 'skep.db'), ...statement } };
}

/** Returns the statement of a search as the driver gets it, so the peer always runs the same statement as the store. */
async function statementOf(searches: () => Promise<unknown>): Promise<Omit<SearchQuery, 'database'>> {
  let statement: Omit<SearchQuery, 'database'> | undefined;
  const note = (sql: string, values: readonly SQLInputValue[]): void => {
    if (/from "sandboxes" .* order by "created_at" desc/u.test(sql)) statement = { sql, values };
  };
  const restores = [watch('all', note), watch('iterate', note)];
  try {
    await searches();
  } finally {
    for (const restore of restores) restore();
  }
  if (statement === undefined) throw new Error('the store reads no page of sandboxes by a statement');
  return statement;
}

/** Reports each call of a method of the driver. Returns the function that stops this. */
function watch(method: 'all' | 'iterate', note: (sql: string, values: readonly SQLInputValue[]) => void): () => void {
  const original: unknown = Reflect.get(StatementSync.prototype, method);
  if (typeof original !== 'function') throw new Error(`a statement has no ${method}`);
  Reflect.set(StatementSync.prototype, method, function (this: StatementSync, ...values: SQLInputValue[]): unknown {
    note(this.sourceSQL, values);
    return Reflect.apply(original, this, values);
  });
  return () => void Reflect.set(StatementSync.prototype, method, original);
}

/** Returns an Express handler that runs the query for each request, and writes the rows in the form of Skep. */
async function serveBare({ database, sql, values }: SearchQuery): Promise<Listening> {
  const statement = new DatabaseSync(database, { readOnly: true }).prepare(sql);
  const app = express();
  app.get(path, (_request, response) => {
    response.json({ items: statement.all(...values).slice(0, rows).map(sandboxOf), next_page_id: null });
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.once('disconnect', () => server.close());
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has this address
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}${path}`, key: '' };
}

function sandboxOf(row: Record<string, SQLOutputValue>): unknown {
  return {
    id: row['id'],
    created_by_user_id: row['owner_id'],
    sandbox_spec_id: row['spec_id'],
    status: row['status'],
    status_detail: null,
    status_reason: row['status_reason'] === null ? null : JSON.parse(String(row['status_reason'])),
    pause_kind: row['pause_kind'],
    paused_by: null,
    paused_reason: null,
    session_api_key: row['session_api_key'],
    exposed_urls: row['status'] === 'RUNNING' ? JSON.parse(String(row['exposed_urls'])).map(inOrder) : null,
    metadata: JSON.parse(String(row['metadata'])),
    created_at: new Date(Number(row['created_at'])),
    updated_at: new Date(Number(row['updated_at'])),
    last_active_at: new Date(Number(row['last_active_at'])),
    expires_at: null,
  };
}

function inOrder({ name, url, port }: Readonly<Record<string, unknown>>): unknown {
  return { name, url, port };
}

process.once('message', (query: 'begin' | SearchQuery) => {
  void (query === 'begin' ? serveSkep() : serveBare(query)).then((listening) => process.send?.(listening));
});
