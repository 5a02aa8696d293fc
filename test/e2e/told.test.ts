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
  expect(found['status_detail']).toEqual(expect.any(String));
  return found['status_reason'];
}

const missed = (miss: object) => ({ code: 'probe_missed', probe: 'http', port: 80, path: '/health', miss });
const answered503 = missed({ kind: 'answered', status: 503 });

describe('status_reason says what was seen', () => {
  test('of a sandbox whose program is not well', async () => {
    await toldOf('unwell', ({ status, status_reason: reason }) => status === 'STARTING' && JSON.stringify(reason) === JSON.stringify(answered503));
  });

  test('of a sandbox that is not ready in time', async () => {
    const reason = await toldOf('closed', ({ status }) => status === 'ERROR');
    expect(reason).toEqual({ code: 'not_ready_in_time', within_ms: 5000, phase: 'starting', last: missed({ kind: 'refused' }) });
  });

  test.each([
    ['acme/shop', 'branch_not_found'],
    ['acme/empty', 'repository_empty'],
  ])('a conversation on a branch that %s lacks is refused', async (repository, failure) => {
    const answer = await call('POST', conversations, { selected_repository: repository, selected_branch: 'next', sandbox_spec_id: 'plain' });
    expect(object(answer)).toMatchObject({ code: failure, repository, branch: 'next' });
    expect(object(await call('GET', conversations))['items']).toEqual([]);
  });
});
