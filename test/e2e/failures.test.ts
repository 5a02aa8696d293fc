import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, object, type Answer, type Client } from '../support/client.ts';
import { createOpenApiChecker, type OpenApiChecker } from '../support/openapi.ts';
import { killSandboxes } from '../support/processes.ts';
import { rawly, rawSocket } from '../support/raw.ts';
import { removeFolder, runSkep, startServer, temporaryFolder, type Server } from '../support/server.ts';
import { until } from '../support/until.ts';
import { corruptRepository, hangingGit } from './hostile-git.ts';

/*
 * Each failure of the table that the executable can be brought to from outside. Those that need a git host or a runtime
 * that fails on purpose are proven over HTTP in test/adapters/express.
 */

const key = 'a-static-key-for-the-failures';
const config = {
  specs: [
    { id: 'plain', command: ['sh', '-c', 'while :; do sleep 1000; done'] },
    { id: 'never', command: ['sh', '-c', 'while :; do sleep 1000; done'], ports: [{ name: 'WEB', port: 80 }], ready: { http: '/', port: 80, within: '10m' } },
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
    env: { SKEP_API_KEY: key, SKEP_LOCAL_GIT_ROOT: root, SKEP_GIT_TIMEOUT: '500ms', PATH: `${programs}:${process.env['PATH'] ?? ''}` },
  });
  call = createClient(server.url, key);
  published = createOpenApiChecker((await call('GET', '/openapi.json')).body);
});
afterAll(async () => {
  await server.stop();
  killSandboxes(folder);
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

describe('each failure, over real HTTP against the executable, has its status and its form', () => {
  test('unauthorized: no key, an unknown one, one that expired or was revoked', async () => {
    const env = { SKEP_DATA_DIR: server.dataDir };
    const expired = (await runSkep(['keys', 'create', 'short', '--expires', '1ms'], env)).stdout.trim();
    const revoked = (await runSkep(['keys', 'create', 'gone'], env)).stdout.trim();
    await runSkep(['keys', 'revoke', 'gone'], env);
    for (const wrong of [null, 'unknown-key', expired, revoked]) {
      expect(codeOf(await ask('GET', '/api/v1/sandboxes/search', undefined, {}, createClient(server.url, wrong)))).toEqual([401, 'unauthorized']);
    }
  });

  test('forbidden: a key that may only read', async () => {
    const { stdout } = await runSkep(['keys', 'create', 'reader', '--access', 'read'], { SKEP_DATA_DIR: server.dataDir });
    expect(codeOf(await ask('POST', '/api/v1/sandboxes', {}, {}, createClient(server.url, stdout.trim())))).toEqual([403, 'forbidden']);
  });

  test('not_found, method_not_allowed', async () => {
    expect(codeOf(await ask('GET', '/api/v1/nothing'))).toEqual([404, 'not_found']);
    const answer = await ask('PATCH', '/api/v1/app-conversations');
    expect([...codeOf(answer), answer.headers.get('allow')]).toEqual([405, 'method_not_allowed', expect.stringMatching(/GET.*POST|POST.*GET/)]);
  });

  test('repository_not_found, provider_failed, provider_timeout', async () => {
    const list = (name: string) => ask('GET', `/api/user/repository/${name}/microagents`);
    expect(codeOf(await list('none'))).toEqual([404, 'repository_not_found']);
    expect(codeOf(await list('corrupt'))).toEqual([502, 'provider_failed']);
    expect(codeOf(await list('corrupt-not'))).toEqual([504, 'provider_timeout']);
    expect(codeOf(await ask('POST', '/api/v1/app-conversations', { selected_repository: 'none' }))).toEqual([404, 'repository_not_found']);
  });

  test('sandbox_not_found, conversation_not_found', async () => {
    for (const [method, path] of [['GET', ''], ['POST', '/pause'], ['POST', '/resume'], ['DELETE', '']] as const) {
      expect(codeOf(await ask(method, `/api/v1/sandboxes/sb-none${path}`))).toEqual([404, 'sandbox_not_found']);
    }
    expect(codeOf(await ask('GET', '/api/v1/app-conversations/conv-none'))).toEqual([404, 'conversation_not_found']);
    expect(codeOf(await ask('DELETE', '/api/v1/app-conversations/conv-none'))).toEqual([404, 'conversation_not_found']);
    expect(codeOf(await ask('POST', '/api/v1/app-conversations', { sandbox_id: 'sb-none' }))).toEqual([404, 'sandbox_not_found']);
  });

  test('sandbox_busy, sandbox_not_running, sandbox_not_paused: the lifecycle refuses the move', async () => {
    const starting = await sandboxIn('never', 'STARTING');
    for (const to of ['pause', 'resume']) expect(codeOf(await ask('POST', `/api/v1/sandboxes/${starting}/${to}`))).toEqual([409, 'sandbox_busy']);
    const failed = await sandboxIn('broken', 'ERROR');
    expect(object(await ask('GET', `/api/v1/sandboxes/${failed}`))['status_reason']).toMatchObject({ code: 'command_not_found', command: 'no-such-program-anywhere' });
    expect(codeOf(await ask('POST', `/api/v1/sandboxes/${failed}/pause`))).toEqual([409, 'sandbox_not_running']);
    // Its files are there, so its command is run again, and fails again.
    expect(codeOf(await ask('POST', `/api/v1/sandboxes/${failed}/resume`))).toEqual([409, 'sandbox_not_paused']);
    await Promise.all([remove(starting), remove(failed)]);
  });

  test('sandbox_limit_reached: the limit is named, and nobody’s running sandbox is touched', async () => {
    const mine = await Promise.all([1, 2, 3].map(() => sandboxIn('plain', 'RUNNING')));
    for (const path of ['/api/v1/sandboxes', '/api/v1/app-conversations']) {
      const answer = await ask('POST', path, {});
      expect([...codeOf(answer), answer.headers.get('retry-after')]).toEqual([429, 'sandbox_limit_reached', expect.stringMatching(/^\d+$/)]);
      expect(JSON.stringify(answer.body)).toContain('running_per_owner');
    }
    for (const id of mine) expect(object(await ask('GET', `/api/v1/sandboxes/${id}`))['status']).toBe('RUNNING');
    await Promise.all(mine.map(remove));
  });

  test('idempotency_conflict, payload_too_large', async () => {
    const headers = { 'Idempotency-Key': 'k' };
    const { id } = object(await ask('POST', '/api/v1/sandboxes', {}, headers));
    expect(codeOf(await ask('POST', '/api/v1/sandboxes', { sandbox_spec_id: 'never' }, headers))).toEqual([409, 'idempotency_conflict']);
    await remove(String(id));
    expect(codeOf(await ask('POST', '/api/v1/app-conversations', { title: 'x'.repeat(2_000_000) }))).toEqual([413, 'payload_too_large']);
  });

  test.each([
    ['GET', '/api/user/repository/a/../b/microagents', undefined, ['path', 'repository_name']],
    ['GET', '/api/user/repository//a/microagents', undefined, ['path', 'repository_name']],
    ['GET', '/api/user/repository/a%2F..%2Fb/microagents', undefined, ['path', 'repository_name']],
    ['GET', '/api/user/repository/a%00b/microagents', undefined, ['path', 'repository_name']],
    ['GET', '/api/user/repository/%ff/microagents', undefined, ['path', 'repository_name']],
    ['GET', '/api/v1/sandboxes/search?limit=101', undefined, ['query', 'limit']],
    ['GET', '/api/v1/sandboxes/search?page_id=made-up', undefined, ['query', 'page_id']],
    ['GET', '/api/v1/sandboxes/search?status__eq=GONE', undefined, ['query', 'status__eq']],
    ['GET', '/api/v1/app-conversations?sort_order=NEWEST', undefined, ['query', 'sort_order']],
    ['GET', '/api/v1/app-conversations?created_at__gte=yesterday', undefined, ['query', 'created_at__gte']],
    ['POST', '/api/v1/sandboxes', { sandbox_spec_id: 'none' }, ['body', 'sandbox_spec_id']],
    ['POST', '/api/v1/sandboxes?sandbox_spec_id=none', undefined, ['query', 'sandbox_spec_id']],
    ['POST', '/api/v1/sandboxes', { colour: 'red' }, ['body', 'colour']],
    ['POST', '/api/v1/sandboxes', '{', ['body']],
    ['POST', '/api/v1/app-conversations', { title: 7 }, ['body', 'title']],
    ['POST', '/api/v1/app-conversations', { selected_repository: '../x' }, ['body', 'selected_repository']],
    ['POST', '/api/v1/app-conversations', { initial_message: { content: [{ type: 'image' }] } }, ['body', 'initial_message', 'content', 0]],
  ])('%s %s is a 422 that names the place', async (method, path, body, loc) => {
    const answer = path.includes('..') || path.includes('//') ? await rawly(server.url, key, method, path) : await ask(method, path, body);
    expect(answer.status).toBe(422);
    const [detail] = object(answer)['detail'] as { loc: unknown[]; msg: string; type: string }[];
    expect(detail).toEqual({ loc: expect.any(Array), msg: expect.any(String), type: expect.any(String) });
    expect(detail?.loc.slice(0, loc.length)).toEqual(loc);
  });

  test('rate_limited: too many wrong keys', async () => {
    const own = await startServer({ env: { SKEP_API_KEY: key } });
    try {
      const guess = createClient(own.url, 'a-wrong-guess');
      const answer = await until(() => guess('GET', '/api/v1/sandboxes/search'), ({ status }) => status !== 401);
      published.check('GET', '/api/v1/sandboxes/search', answer);
      expect([...codeOf(answer), answer.headers.get('retry-after')]).toEqual([429, 'rate_limited', expect.stringMatching(/^\d+$/)]);
    } finally {
      await own.stop();
      await removeFolder(own.dataDir);
    }
  });

  test('runtime_unavailable: the folder of the workspaces is gone; the sandbox runs on, and is paused when it is back', async () => {
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

  test('store_unavailable: another program holds the database', { timeout: 60_000 }, async () => {
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

  test('shutting_down: a request that is completed while another one keeps the server from ending', async () => {
    const env = { SKEP_API_KEY: key, SKEP_LOCAL_GIT_ROOT: join(folder, 'git'), SKEP_GIT_TIMEOUT: '3s', PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}` };
    const own = await startServer({ env });
    const late = rawSocket(own.url);
    late.socket.write('GET /api/v1/sandboxes/search HTTP/1.1\r\nHost: x\r\n');
    const hangs = join(folder, 'bin/hangs');
    rmSync(hangs, { force: true });
    const slow = createClient(own.url, key)('GET', '/api/user/repository/corrupt-not/microagents');
    await until(() => existsSync(hangs), Boolean);
    own.process.kill('SIGTERM');
    await until(() => own.output().stderr, (log) => log.includes('draining'));
    late.socket.write(`X-Session-API-Key: ${key}\r\n\r\n`);
    await until(() => late.text(), (text) => text.includes('shutting_down'));
    expect(late.text()).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: \d+/i);
    expect(codeOf(await slow)).toEqual([504, 'provider_timeout']);
    expect(await own.exited).toBe(0);
    await removeFolder(own.dataDir);
  });
});
