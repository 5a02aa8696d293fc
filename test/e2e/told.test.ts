import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRepository } from '../contracts/git-repository.ts';
import { createClient, object, type Client } from '../support/client.ts';
import { killSandboxes } from '../support/processes.ts';
import { removeFolder, startServer, temporaryFolder, type Server } from '../support/server.ts';
import { until } from '../support/until.ts';

const key = 'a-static-key-for-what-is-told';
const idle = ['sh', '-c', 'while :; do sleep 1000; done'];
const unwell = "require('node:http').createServer((_, answer) => answer.writeHead(503).end()).listen(process.env.SKEP_PORT_80)";
const ports = [{ name: 'WEB', port: 80 }];
const config = {
  specs: [
    { id: 'plain', command: idle },
    { id: 'unwell', command: [process.execPath, '-e', unwell], ports, ready: { http: '/health?key=secret', port: 80, within: '10m' } },
    { id: 'closed', command: idle, ports, ready: { http: '/health', port: 80, within: '5s' } },
  ],
};

const conversations = '/api/v1/app-conversations';
let folder: string;
let server: Server;
let call: Client;

beforeAll(async () => {
  folder = await temporaryFolder();
  const root = join(folder, 'git');
  await createRepository(join(root, 'acme/shop.git'), { commits: [{ id: 'first', at: 1_600_000_000, files: [['a', '1']] }] });
  await createRepository(join(root, 'acme/empty.git'), { commits: [] });
  server = await startServer({ config, dataDir: join(folder, 'data'), env: { SKEP_API_KEY: key, SKEP_LOCAL_GIT_ROOT: root } });
  call = createClient(server.url, key);
});
afterAll(async () => {
  await server?.stop();
  killSandboxes(folder);
  await removeFolder(folder);
});

/** What is told of a new sandbox once this holds. */
async function toldOf(spec: string, holds: (sandbox: Readonly<Record<string, unknown>>) => boolean): Promise<unknown> {
  const { id } = object(await call('POST', '/api/v1/sandboxes', { sandbox_spec_id: spec }));
  const found = await until(async () => object(await call('GET', `/api/v1/sandboxes/${String(id)}`)), holds);
  await call('DELETE', `/api/v1/sandboxes/${String(id)}`);
  return found['status_detail'];
}

describe('status_detail tells what was seen', () => {
  test('of a sandbox whose program is not well', async () => {
    await toldOf('unwell', ({ status, status_detail: detail }) => status === 'STARTING' && detail === 'the last probe of http port 80 /health: answered 503');
  });

  test('of a sandbox that is not ready in time', async () => {
    const detail = await toldOf('closed', ({ status }) => status === 'ERROR');
    expect(detail).toBe('it was not ready within 5 s; the last probe of http port 80 /health: connection refused');
  });

  test.each([
    ['acme/shop', 'PREPARING_REPOSITORY: The repository "acme/shop" has no branch "next". Select one that it has, or none for its default branch.'],
    ['acme/empty', 'PREPARING_REPOSITORY: The repository "acme/empty" is empty: it has no commit, and so no branch "next". Push one, or select no branch.'],
  ])('of a conversation on a branch that %s lacks', async (repository, detail) => {
    const { id } = object(await call('POST', conversations, { selected_repository: repository, selected_branch: 'next', sandbox_spec_id: 'plain' }));
    const found = await until(async () => object(await call('GET', `${conversations}/${String(id)}`)), ({ start_status: status }) => status === 'ERROR');
    expect(found['status_detail']).toBe(detail);
    await call('DELETE', `${conversations}/${String(id)}`);
  });
});
