import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, object, type Answer, type Client } from '../support/client.ts';
import { createOpenApiChecker, type OpenApiChecker } from '../support/openapi.ts';
import { rawSocket } from '../support/raw.ts';
import { removeFolder, runSkep, startServer, temporaryFolder, type Server } from '../support/server.ts';
import { until } from '../support/until.ts';
import { corruptRepository, hangingGit } from './hostile-git.ts';

// Failures whose cause lies outside the HTTP adapter: keys, git, the process runtime, the database, a shutdown. Other failures are
// tested in test/adapters/http.

const key = 'a-static-key-for-the-failures';
const unwell = "require('node:http').createServer((_, answer) => answer.writeHead(503).end()).listen(process.env.SKEP_PORT_80)";
const ports = [{ name: 'WEB', port: 80 }];
const config = {
  specs: [
    { id: 'plain', command: ['sh', '-c', 'while :; do sleep 1000; done'] },
    { id: 'unwell', command: [process.execPath, '-e', unwell], ports, ready: { http: '/health?key=secret', port: 80, within: '10m' } },
    { id: 'closed', command: ['sh', '-c', 'while :; do sleep 1000; done'], ports, ready: { http: '/health', port: 80, within: '5s' } },
    { id: 'broken', command: ['no-such-program-anywhere'] },
  ],
  limits: { running_per_owner: 3 },
};

let folder: string;
let server: Server;
let published: OpenApiChecker;
let call: Client;

beforeAll(async () => {
  folder = await temporaryFolder();
  const root = join(folder, 'git');
  corruptRepository(join(root, 'corrupt'));
  const programs = join(folder, 'bin');
  hangingGit(programs);
  server = await startServer({
    config,
    dataDir: join(folder, 'data'),
    env: { SKEP_API_KEY: key, SKEP_LOCAL_GIT_ROOT: root, SKEP_GIT_TIMEOUT: '2s', PATH: `${programs}:${process.env['PATH'] ?? ''}` },
  });
  call = createClient(server.url, key);
  published = createOpenApiChecker((await call('GET', '/openapi.json')).body);
});
afterAll(async () => {
  await server.close();
  await removeFolder(folder);
});

async function ask(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>, client: Client = call): Promise<Answer> {
  const answer = await client(method, path, body, headers);
  published.check(method, path, answer);
  return answer;
}

const codeOf = (answer: Answer) => [answer.status, object(answer)['code']];

async function sandboxIn(spec: string, status: string): Promise<string> {
  const { id } = object(await ask('POST', '/api/v1/sandboxes', { sandbox_spec_id: spec }));
  await until(async () => object(await ask('GET', `/api/v1/sandboxes/${String(id)}`)), (found) => found['status'] === status);
  return String(id);
}

const remove = (id: string) => ask('DELETE', `/api/v1/sandboxes/${id}`);

describe('A failure of the executable has its status and its code', () => {
  test('unauthorized: a missing, unknown or expired key', async () => {
    const expired = (await runSkep(['keys', 'create', 'short', '--expires', '1ms'], { SKEP_DATA_DIR: server.dataDir })).stdout.trim();
    for (const wrong of [null, 'unknown-key', expired]) {
      expect(codeOf(await ask('GET', '/api/v1/sandboxes/search', undefined, {}, createClient(server.url, wrong)))).toEqual([401, 'unauthorized']);
    }
  });

  test('repository_not_found, provider_failed and provider_timeout', async () => {
    const list = (name: string) => ask('GET', `/api/user/repository/${name}/microagents`);
    expect(codeOf(await list('none'))).toEqual([404, 'repository_not_found']);
    expect(codeOf(await list('corrupt'))).toEqual([502, 'provider_failed']);
    expect(codeOf(await list('corrupt-not'))).toEqual([504, 'provider_timeout']);
    expect(codeOf(await ask('POST', '/api/v1/app-conversations', { selected_repository: 'none' }))).toEqual([404, 'repository_not_found']);
  });

  test("sandbox_busy and sandbox_not_running: the sandbox's status does not allow the call", async () => {
    const starting = await sandboxIn('unwell', 'STARTING');
    for (const to of ['pause', 'resume']) expect(codeOf(await ask('POST', `/api/v1/sandboxes/${starting}/${to}`))).toEqual([409, 'sandbox_busy']);
    const failed = await sandboxIn('broken', 'ERROR');
    expect(object(await ask('GET', `/api/v1/sandboxes/${failed}`))['status_reason']).toMatchObject({ code: 'command_not_found', command: 'no-such-program-anywhere' });
    expect(codeOf(await ask('POST', `/api/v1/sandboxes/${failed}/pause`))).toEqual([409, 'sandbox_not_running']);
    // A sandbox in ERROR keeps its files, so a resume runs its command again, which fails again.
    expect(codeOf(await ask('POST', `/api/v1/sandboxes/${failed}/resume`))).toEqual([409, 'sandbox_not_running']);
    await Promise.all([remove(starting), remove(failed)]);
  });

  test('sandbox_limit_reached: the response names the limit, and running sandboxes stay RUNNING', async () => {
    const mine = await Promise.all([1, 2, 3].map(() => sandboxIn('plain', 'RUNNING')));
    for (const path of ['/api/v1/sandboxes', '/api/v1/app-conversations']) {
      const answer = await ask('POST', path, {});
      expect([...codeOf(answer), answer.headers.get('retry-after')]).toEqual([429, 'sandbox_limit_reached', expect.stringMatching(/^\d+$/)]);
      expect(JSON.stringify(answer.body)).toContain('running_per_owner');
    }
    for (const id of mine) expect(object(await ask('GET', `/api/v1/sandboxes/${id}`))['status']).toBe('RUNNING');
    await Promise.all(mine.map(remove));
  });

  test('payload_too_large: a body of 2 MB', async () => {
    expect(codeOf(await ask('POST', '/api/v1/app-conversations', { title: 'x'.repeat(2_000_000) }))).toEqual([413, 'payload_too_large']);
  });

  test('rate_limited: too many wrong keys', async () => {
    // Requests with the valid key, as those of the other tests, are not limited.
    const guess = createClient(server.url, 'a-wrong-guess');
    const answer = await until(() => ask('GET', '/api/v1/sandboxes/search', undefined, {}, guess), ({ status }) => status !== 401);
    expect([...codeOf(answer), answer.headers.get('retry-after')]).toEqual([429, 'rate_limited', expect.stringMatching(/^\d+$/)]);
  });

  test('runtime_unavailable: the folder of the sandboxes is missing, and a pause succeeds after its return', async () => {
    const id = await sandboxIn('plain', 'RUNNING');
    const root = join(server.dataDir, 'sandboxes');
    renameSync(root, `${root}.away`);
    writeFileSync(root, 'no folder');
    const answer = await ask('POST', `/api/v1/sandboxes/${id}/pause`);
    expect([...codeOf(answer), answer.headers.get('retry-after')]).toEqual([503, 'runtime_unavailable', expect.stringMatching(/^\d+$/)]);
    renameSync(root, `${root}.rubbish`);
    renameSync(`${root}.away`, root);
    const paused = await until(() => ask('POST', `/api/v1/sandboxes/${id}/pause`), ({ status }) => status === 200);
    expect(object(paused)).toMatchObject({ status: 'PAUSED', pause_kind: 'freeze' });
    await remove(id);
  });

  test('store_unavailable: another program has locked the database', async () => {
    const name = readdirSync(server.dataDir).find((file) => file.endsWith('.db') || file.endsWith('.sqlite')) ?? 'none';
    using database = new DatabaseSync(join(server.dataDir, name));
    database.exec('BEGIN EXCLUSIVE');
    const answer = await ask('POST', '/api/v1/sandboxes', {});
    database.exec('ROLLBACK');
    expect([...codeOf(answer), answer.headers.get('retry-after')]).toEqual([503, 'store_unavailable', expect.stringMatching(/^\d+$/)]);
    const after = await ask('POST', '/api/v1/sandboxes', {});
    expect(after.status).toBe(201);
    await remove(String(object(after)['id']));
  });

  test('shutting_down: a request is completed after SIGTERM while another one still runs', async () => {
    const env = { SKEP_API_KEY: key, SKEP_LOCAL_GIT_ROOT: join(folder, 'git'), SKEP_GIT_TIMEOUT: '3s', PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}` };
    const own = await startServer({ env });
    const late = rawSocket(own.url);
    late.socket.write('GET /api/v1/sandboxes/search HTTP/1.1\r\nHost: x\r\n');
    const hangs = join(folder, 'bin/hangs');
    rmSync(hangs, { force: true });
    const slow = createClient(own.url, key)('GET', '/api/user/repository/corrupt-not/microagents');
    await until(() => existsSync(hangs), Boolean);
    own.process.kill('SIGTERM');
    await until(() => own.output().stderr, (log) => log.includes('shutting down'));
    late.socket.write(`X-Session-API-Key: ${key}\r\n\r\n`);
    await until(() => late.text(), (text) => text.includes('shutting_down'));
    expect(late.text()).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: \d+/i);
    expect(codeOf(await slow)).toEqual([504, 'provider_timeout']);
    expect(await own.exited).toBe(0);
    await removeFolder(own.dataDir);
  });
});

const missed = (miss: object) => ({ code: 'probe_missed', probe: 'http', port: 80, path: '/health', miss });

describe('status_reason names the last missed probe', () => {
  test.each([
    ['fails its probe', 'unwell', 'STARTING', missed({ kind: 'answered', status: 503 })],
    ['is not ready in time', 'closed', 'ERROR', { code: 'not_ready_in_time', within_ms: 5000, phase: 'starting', last: missed({ kind: 'refused' }) }],
  ])('of a sandbox that %s', async (_, spec, status, reason) => {
    const path = `/api/v1/sandboxes/${String(object(await ask('POST', '/api/v1/sandboxes', { sandbox_spec_id: spec }))['id'])}`;
    const seen = (found: Readonly<Record<string, unknown>>) => found['status'] === status && isDeepStrictEqual(found['status_reason'], reason);
    expect(await until(async () => object(await ask('GET', path)), seen)).toMatchObject({ status_detail: expect.any(String) });
    await call('DELETE', path);
  });
});
