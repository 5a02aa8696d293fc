import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApiKeys } from '../../src/adapters/auth/api-keys/index.ts';
import { createHttpServer } from '../../src/adapters/http/index.ts';
import { createSqliteStore } from '../../src/adapters/store/sqlite/index.ts';
import { createSkep } from '../../src/composition/create-skep.ts';
import { unlimited } from '../../src/domain/admission-limits.ts';
import { eventOf, someConversation, someSandbox } from '../../test/contracts/records.ts';
import { createMemoryRuntime, createSilentLogger, MemoryEngine } from '../../test/doubles/memory/index.ts';
import type { Listening } from '../server-process.ts';

const [sandboxes, conversations] = [10_000, 1000];
const ownerId = 'default';
const everyMs = 20;

/** A server with many records that need no work. */
async function serve(): Promise<Listening> {
  const dataDir = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const store = await createSqliteStore({ dataDir });
  for (let n = 0; n < sandboxes; n += 1) {
    const now = Date.now();
    const times = { createdAt: now, updatedAt: now, lastActiveAt: now };
    await store.sandboxes.insert(someSandbox(`sb-${n}`, { ownerId, status: 'MISSING', ...times }), unlimited);
  }
  for (let n = 0; n < conversations; n += 1) {
    const changes = { ownerId, sandboxId: `sb-${n}`, startStatus: 'ERROR', title: `Title ${n}`, createdAt: Date.now(), updatedAt: Date.now() } as const;
    await store.conversations.insert(someConversation(`conv-${n}`, changes));
  }
  const skep = await createSkep({
    store, runtime: createMemoryRuntime(new MemoryEngine()), logger: createSilentLogger(), specs: [{ id: 'plain', command: ['serve'] }],
  });
  const { key } = await createApiKeys({ keys: store.apiKeys, clock: skep.clock, random: skep.random }).create({ name: 'bench', access: 'admin' });
  const server = await createHttpServer(skep, { port: 0, requestsPerMinute: null });
  let said = 0;
  let speaking: NodeJS.Timeout | undefined;
  process.on('message', (perSecond) => {
    clearInterval(speaking);
    if (typeof perSecond !== 'number' || perSecond === 0) return;
    speaking = setInterval(() => {
      const texts = Array.from({ length: (perSecond * everyMs) / 1000 }, () => `part ${(said += 1)} of what the agent says. `);
      const place = { at: Date.now(), ownerId, conversationId: 'conv-0', sandboxId: 'sb-0' };
      void store.events.append(texts.map((text) => eventOf('message_chunk', { messageId: 'said', channel: 'answer', text }, place)));
    }, everyMs);
  });
  process.once('disconnect', () => {
    clearInterval(speaking);
    void server.close().then(() => skep.close()).then(() => store.close()).then(() => rm(dataDir, { recursive: true, force: true }));
  });
  return { url: server.url, key };
}

process.once('message', () => void serve().then((listening) => process.send?.(listening)));
