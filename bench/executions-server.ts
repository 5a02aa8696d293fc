import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createApiKeys } from '../src/adapters/auth/api-keys/index.ts';
import { createHttpServer } from '../src/adapters/http/index.ts';
import { createSqliteStore } from '../src/adapters/store/sqlite/index.ts';
import { readDeploymentFile } from '../src/composition/config/deployment-file.ts';
import { createSkep } from '../src/composition/create-skep.ts';
import { clearUp } from './engine.ts';
import type { Listening } from './server-process.ts';

/** Skep on the engine, with its store on disk. The URL is that of the executions of one sandbox. */
async function serve(image: string): Promise<Listening> {
  const dataDir = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const store = await createSqliteStore({ dataDir });
  const specs = [{ id: 'plain', image, command: ['sleep', '100000'] }];
  const skep = await createSkep({ dataDir, store, runtime: { kind: 'docker' }, specs });
  const { key, record } = await createApiKeys({ keys: store.apiKeys, clock: skep.clock, random: skep.random }).create({ name: 'bench' });
  const { id } = await skep.sandboxes.start(record.userId, { specId: null });
  while ((await skep.sandboxes.get(record.userId, id)).status !== 'RUNNING') await pause(20);
  const server = await createHttpServer(skep, { port: 0, requestsPerMinute: 1_000_000_000 });
  process.once('disconnect', () => {
    void server
      .close()
      .then(() => skep.sandboxes.delete(record.userId, id))
      .then(() => skep.close())
      .then(() => store.close())
      .then(() => clearUp(readDeploymentFile(dataDir)?.id ?? 'none'))
      .then(() => rm(dataDir, { recursive: true, force: true }));
  });
  return { url: `${server.url}/api/v1/sandboxes/${id}/executions`, key };
}

process.once('message', (image: string) => {
  void serve(image).then((listening) => process.send?.(listening));
});
