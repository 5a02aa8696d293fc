import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import { Kysely } from 'kysely';
import { pino } from 'pino';
import { createApiKeys } from '../src/adapters/auth/api-keys/index.ts';
import { createHttpServer } from '../src/adapters/http/index.ts';
import { createMemoryRuntime, MemoryEngine } from '../test/doubles/memory/index.ts';
import { createPinoLogger } from '../src/adapters/logger/pino/index.ts';
import type { Database, SandboxRow } from '../src/adapters/store/database.ts';
import { createSqliteDialect } from '../src/adapters/store/sqlite/dialect.ts';
import { createSqliteStore } from '../src/adapters/store/sqlite/index.ts';
import { createSkep } from '../src/composition/create-skep.ts';

/** What a server of the benchmark tells its parent when it listens. */
export interface Listening {
  readonly url: string;
  /** Empty if none is needed. */
  readonly key: string;
}

/** A server of the search, with what a peer needs to send the same page. */
export interface SearchServer extends Listening {
  readonly data: SearchData;
}

interface SearchData {
  readonly dataDir: string;
  readonly ownerId: string;
}

const path = '/api/v1/sandboxes/search';
const rows = 20;

/** Skep with everything that a request passes in a deployment: store on disk, a key of the store, the log. */
async function serveSkep(): Promise<SearchServer> {
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
  const server = await createHttpServer(skep, { port: 0 });
  process.once('disconnect', () => {
    void server
      .close()
      .then(() => skep.close())
      .then(() => store.close())
      .then(() => rm(dataDir, { recursive: true, force: true }));
  });
  return { url: `${server.url}${path}`, key, data: { dataDir, ownerId: record.userId } };
}

/** A route of Express that runs the query of the search through the same driver, and sends the same page. */
async function serveBare(data: SearchData): Promise<SearchServer> {
  const sqlite = new DatabaseSync(join(data.dataDir, 'skep.db'));
  const db = new Kysely<Database>({ dialect: createSqliteDialect(sqlite, 5000) });
  const app = express();
  app.get(path, async (_request, response) => {
    const page = await db
      .selectFrom('sandboxes')
      .selectAll()
      .where('owner_id', '=', data.ownerId)
      .where('deleted_at', 'is', null)
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
      .limit(rows + 1)
      .execute();
    response.json({ items: page.map(itemOf), next_page_id: null });
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.once('disconnect', () => server.close(() => sqlite.close()));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has this address
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}${path}`, key: '', data };
}

function itemOf(row: SandboxRow): object {
  return {
    id: row.id,
    created_by_user_id: row.owner_id,
    sandbox_spec_id: row.spec_id,
    status: row.status,
    status_detail: row.status_detail,
    pause_kind: row.pause_kind,
    session_api_key: row.session_api_key,
    exposed_urls: JSON.parse(row.exposed_urls) as unknown,
    created_at: new Date(row.created_at).toISOString(),
    updated_at: new Date(row.updated_at).toISOString(),
    last_active_at: new Date(row.last_active_at).toISOString(),
  };
}

process.once('message', (data: SearchData | 'skep') => {
  void (data === 'skep' ? serveSkep() : serveBare(data)).then((listening) => process.send?.(listening));
});
