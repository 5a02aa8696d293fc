import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { removeFolder, startServer, temporaryFolder } from '../support/server.ts';

/** Accepts connections and never answers. */
async function hangingEngine(path: string): Promise<void> {
  const sockets = new Set<Socket>();
  const engine = createServer((socket) => sockets.add(socket.on('error', () => {}))).listen(path);
  await once(engine, 'listening');
  onTestFinished(() => {
    engine.close();
    for (const socket of sockets) socket.destroy();
  });
}

test('the server starts and stops in time if the engine never answers', async () => {
  const folder = await temporaryFolder();
  onTestFinished(async () => await removeFolder(folder));
  const path = join(folder, 'engine.sock');
  await hangingEngine(path);
  const env = { SKEP_SANDBOX_RUNTIME: 'auto', SKEP_DOCKER_HOST: `unix://${path}`, SKEP_SHUTDOWN_TIMEOUT: '4s' };
  const server = await startServer({ dataDir: join(folder, 'data'), env });
  expect((await fetch(`${server.url}/health`)).status).toBe(200);
  expect(server.output().stdout).toMatch(/others +- +NOT OK have not answered yet/);
  expect(await server.stop()).toBe(0);
  await expect(fetch(`${server.url}/health`)).rejects.toThrow('fetch failed');
  expect(server.output().stderr).toMatch(/shutting down/);
});
