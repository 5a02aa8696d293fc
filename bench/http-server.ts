import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import { pino } from 'pino';
import { createApiKeys } from '../src/adapters/auth/api-keys/index.ts';
import { createHttpServer } from '../src/adapters/http/index.ts';
import { createMemoryRuntime, MemoryEngine } from '../test/doubles/memory/index.ts';
import { createPinoLogger } from '../src/adapters/logger/pino/index.ts';
import { createSqliteStore } from '../src/adapters/store/sqlite/index.ts';
import { createSkep } from '../src/composition/create-skep.ts';

/** What a server of the benchmark tells its parent when it listens. */
export interface Listening {
  readonly url: string;
  /** Empty where none is needed. */
  readonly key: string;
}

const path = '/api/v1/sandboxes/search';
const rows = 20;

/** Skep with everything that a request passes in a deployment: store on disk, a key of the store, the log. */
async function serveSkep(): Promise<Listening> {
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
  return { url: `${server.url}${path}`, key };
}

/** A route of Express that has its answer ready. */
async function serveBare(body: string): Promise<Listening> {
  const app = express();
  app.get(path, (_request, response) => {
    response.type('application/json').send(body);
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.once('disconnect', () => server.close());
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has this address
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}${path}`, key: '' };
}

process.once('message', (body: string) => {
  void (body === '' ? serveSkep() : serveBare(body)).then((listening) => process.send?.(listening));
});
