import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createProxyServer as createLibraryProxy } from 'httpxy';
import { createApiKeys } from '../../src/adapters/auth/api-keys/index.ts';
import { createProxyServer } from '../../src/adapters/proxy/index.ts';
import { createSqliteStore } from '../../src/adapters/store/sqlite/index.ts';
import { createSkep } from '../../src/composition/create-skep.ts';
import type { Listening } from '../server-process.ts';

const port = 8000;

/** Skep's proxy in front of a sandbox of the process runtime, with its store on disk and a key of the store. */
async function serveSkep(): Promise<Listening & { readonly upstream: string }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const store = await createSqliteStore({ dataDir });
  const skep = await createSkep({
    dataDir, store, runtime: { kind: 'process' },
    specs: [{ id: 'web', command: [process.execPath, join(import.meta.dirname, 'upstream.ts')], ports: [{ name: 'WEB', port }], ready: { tcp: true, port } }],
  });
  const { key, record } = await createApiKeys({ keys: store.apiKeys, clock: skep.clock, random: skep.random }).create({ name: 'bench' });
  const { id } = await skep.sandboxes.start(record.userId, { specId: null });
  const state = async () => await skep.sandboxes.get(record.userId, id);
  while ((await state()).status !== 'RUNNING') await pause(20);
  const upstream = (await state()).exposedUrls[0]?.url ?? '';
  const proxy = await createProxyServer(skep, { port: 0, connectionsPerSandbox: null });
  process.once('disconnect', () => {
    void skep.sandboxes
      .delete(record.userId, id)
      .then(() => proxy.close())
      .then(() => skep.close())
      .then(() => store.close())
      .then(() => rm(dataDir, { recursive: true, force: true }))
      .then(() => process.exit());
  });
  return { url: `${proxy.url}/${id}/${port}/`, key, upstream };
}

/** The proxy library alone, with keep-alive connections to the sandbox. */
async function serveLibrary(upstream: string): Promise<Listening> {
  const { Agent } = await import('node:http');
  const library = createLibraryProxy({ target: upstream, agent: new Agent({ keepAlive: true, scheduling: 'lifo' }) });
  const server = createServer((request, response) => void library.web(request, response));
  server.on('upgrade', (request, socket, head) => void library.ws(request, socket as Socket, {}, head));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.once('disconnect', () => process.exit());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, key: '' };
}

process.once('message', (message: string) => {
  const serving = message === 'begin' ? serveSkep() : serveLibrary(message);
  void serving.then((listening) => process.send?.(listening));
});
/** Every later message asks for the memory of the process. */
process.on('message', (message) => {
  if (message !== 'memory') return;
  gc?.();
  process.send?.({ rss: process.memoryUsage.rss() });
});
