import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { createApiKeys } from '../../src/adapters/auth/api-keys/index.ts';
import { createHttpServer } from '../../src/adapters/http/index.ts';
import { createPinoLogger } from '../../src/adapters/logger/pino-logger.ts';
import { createSqliteStore } from '../../src/adapters/store/sqlite/index.ts';
import { createSkep } from '../../src/composition/create-skep.ts';
import { acpAgentCommand } from '../../test/doubles/acp-agent/start.ts';
import type { Listening } from '../server-process.ts';

/** A complete Skep server, with the process runtime and the scripted agent. */
async function serve(): Promise<Listening> {
  const dataDir = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const destination = pino.destination({ dest: '/dev/null', sync: false });
  const store = await createSqliteStore({ dataDir });
  const agent = { protocol: 'acp', command: acpAgentCommand(), permissions: 'allow', start_within: '120s' } as const;
  const skep = await createSkep({
    dataDir,
    store,
    runtime: { kind: 'process' },
    logger: createPinoLogger({ level: 'info', destination }),
    specs: [{ id: 'agent', command: ['sleep', '100000'], agent }],
  });
  const { key } = await createApiKeys({ keys: store.apiKeys, clock: skep.clock, random: skep.random }).create({ name: 'bench' });
  const server = await createHttpServer(skep, { port: 0, requestsPerMinute: null });
  process.once('disconnect', () => {
    void (async () => {
      await server.close();
      for (let more = true; more; ) {
        const { items } = await skep.conversations.search('default', {}, 'CREATED_AT', { after: null, limit: 100 });
        await Promise.all(items.map(({ conversation }) => skep.conversations.delete('default', conversation.id)));
        more = items.length > 0;
      }
      await skep.close();
      await store.close();
      await rm(dataDir, { recursive: true, force: true });
    })();
  });
  return { url: server.url, key };
}

process.on('message', (asked) => {
  // `memory` asks for the memory of the process; any other message starts the server.
  if (asked === 'memory') process.send?.(process.memoryUsage.rss());
  else void serve().then((listening) => process.send?.(listening));
});
