import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { rawSocket } from '../support/raw.ts';
import { folderForServers, startServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const folder = folderForServers();

test('two signals of one Ctrl-C shut the server down once, and a second Ctrl-C kills it', async () => {
  const key = 'a-static-key-of-16-or-more';
  const interrupted = async (dataDir: string) => {
    const server = await startServer({ dataDir, env: { SKEP_API_KEY: key, SKEP_SHUTDOWN_TIMEOUT: '30d' } });
    const request = rawSocket(server.url);
    const head = ['POST /api/v1/sandboxes HTTP/1.1', 'Host: x', `X-Session-API-Key: ${key}`, 'Content-Type: application/json', 'Content-Length: 2'];
    request.socket.write(`${[...head, 'Expect: 100-continue', 'Connection: close'].join('\r\n')}\r\n\r\n`);
    await until(() => request.text(), (text) => text.includes('100 Continue'));
    const at = performance.now();
    server.process.kill('SIGINT');
    await setTimeout(10);
    server.process.kill('SIGINT');
    await until(() => server.output().stderr, (log) => /shutting down.*a second Ctrl-C stops at once/.test(log));
    return { server, request, at };
  };

  const drained = await interrupted(join(folder, 'interrupted'));
  drained.request.socket.write('{}');
  expect(await drained.server.exited).toBe(0);
  expect(drained.request.text()).toMatch(/HTTP\/1\.1 201 /);

  const { server, at } = await interrupted(join(folder, 'interrupted twice'));
  await until(() => server.process.kill('SIGINT'), () => server.process.signalCode !== null);
  expect([server.process.signalCode, performance.now() - at > 990]).toEqual(['SIGINT', true]);
});

test('the rest of a body whose request was refused does not hold up the shutdown', { timeout: 60_000 }, async () => {
  const server = await startServer({ dataDir: join(folder, 'refused'), env: { SKEP_SHUTDOWN_TIMEOUT: '8s' } });
  const upload = rawSocket(server.url);
  upload.socket.write('PUT /api/v1/sandboxes/sb-1/files?path=a HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\nthe first bytes');
  await until(() => upload.text(), (text) => text.startsWith('HTTP/1.1 401 '));
  expect(await server.stop()).toBe(0);
});
