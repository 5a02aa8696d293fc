import { basename, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { acpAgentCommand } from '../doubles/acp-agent/start.ts';
import { acpScript } from '../doubles/acp-agent/steps.ts';
import { createClient, items, object, type Answer, type Client } from '../support/client.ts';
import { createOpenApiChecker, type OpenApiChecker, type OpenApiDocument } from '../support/openapi.ts';
import { startServer, type Server } from '../support/server.ts';
import { quarantine } from '../support/quarantine.ts';
import { until } from '../support/until.ts';
import { callEachOfAdministration } from './administration-routes.ts';
import { callEachOfChanges, callEachOfHistory } from './conversation-routes.ts';
import { callEachOfExecutions } from './execution-routes.ts';
import { callEachOfFiles } from './file-routes.ts';

const key = 'a-static-key-for-the-routes';
const project = resolve(import.meta.dirname, '../..');
let server: Server;
let published: OpenApiChecker;
let document: OpenApiDocument;
let call: Client;

beforeAll(async () => {
  server = await startServer({ env: { SKEP_API_KEY: key, SKEP_LOCAL_GIT_ROOT: project } });
  call = createClient(server.url, key);
  document = (await call('GET', '/openapi.json')).body as OpenApiDocument;
  published = createOpenApiChecker(document);
});
afterAll(async () => {
  await server.close();
});

/** The operations of the document that a test has called successfully. */
const succeeded = new Set<string>();

async function ask(method: string, template: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>, client: Client = call): Promise<Answer> {
  const answer = await client(method, path, body, headers);
  published.check(method, path.split('?')[0] ?? path, answer);
  if (answer.status < 300) succeeded.add(`${method.toLowerCase()} ${template}`);
  return answer;
}

const ids = (answer: Answer) => items(answer).map((one) => String(one['id']));
const sandboxOf = async (id: unknown) => object(await ask('GET', '/api/v1/sandboxes/{id}', `/api/v1/sandboxes/${String(id)}`));

describe('Each route responds as the OpenAPI document says', () => {
  test('health and readiness, without a key', async () => {
    const open = createClient(server.url, null);
    for (const path of ['/health', '/ready', '/openapi.json']) {
      const answer = await open('GET', path);
      published.check('GET', path, answer);
      expect(answer.status).toBe(200);
      succeeded.add(`get ${path}`);
    }
    expect((await open('GET', '/docs')).headers.get('content-type')).toContain('text/html');
    succeeded.add('get /docs');
  });

  test('microagents', async () => {
    const template = '/api/user/repository/{repository_name}/microagents';
    const name = encodeURIComponent(basename(project));
    const answer = await ask('GET', template, `/api/user/repository/${name}/microagents`);
    expect(answer.status).toBe(200);
    expect((answer.body as { name: string }[]).map(({ name }) => name)).toEqual(['adapter', 'http/routes', 'sandbox-lifecycle', 'testing']);

    const read = await ask('GET', `${template}/content`, `/api/user/repository/${name}/microagents/content?file_path=.skep/microagents/adapter.md`);
    expect(object(read)).toMatchObject({ triggers: expect.arrayContaining(['adapter']), content: expect.stringMatching(/^\n# Writing or changing an adapter\n/) });
  });

  test('a sandbox from its start to its deletion', async () => {
    const created = await ask('POST', '/api/v1/sandboxes', '/api/v1/sandboxes', { sandbox_spec_id: 'workspace' });
    expect(created.status).toBe(201);
    const [{ id }, path] = [object(created), created.headers.get('location') ?? ''];
    expect(path).toMatch(new RegExp(`/api/v1/sandboxes/${String(id)}$`));
    expect(object(created)).toMatchObject({ status: 'STARTING', session_api_key: null, exposed_urls: null, created_by_user_id: 'default' });
    const running = await until(() => sandboxOf(id), ({ status }) => status === 'RUNNING');
    expect(running).toMatchObject({ session_api_key: expect.any(String), exposed_urls: [{ name: 'FILES', port: 8000, url: expect.any(String) }] });

    const usage = await ask('GET', '/api/v1/sandboxes/{id}/usage', `/api/v1/sandboxes/${String(id)}/usage`);
    expect(object(usage)).toEqual({ cpu_ms: null, cpu_percent: null, memory_bytes: null, memory_limit_bytes: null, disk_bytes: expect.any(Number), pids: null, at: expect.any(String) });

    const link = await ask('POST', '/api/v1/sandboxes/{id}/ports/{port}/links', `/api/v1/sandboxes/${String(id)}/ports/8000/links`, {});
    expect(object(link)).toEqual({ url: expect.stringContaining(String(id)), expires_at: expect.any(String) });

    const move = async (to: string, body?: unknown) => object(await ask('POST', `/api/v1/sandboxes/{id}/${to}`, `/api/v1/sandboxes/${String(id)}/${to}`, body));
    expect(await move('pause')).toMatchObject({ status: 'PAUSED', pause_kind: 'freeze', session_api_key: null, exposed_urls: null });
    expect(await move('resume')).toMatchObject({ status: 'RUNNING', pause_kind: null, session_api_key: running['session_api_key'] });
    expect(await move('pause', { pause_kind: 'stop' })).toMatchObject({ status: 'PAUSED', pause_kind: 'stop' });
    expect(await move('resume')).toMatchObject({ status: 'RUNNING' });

    const logs = await ask('GET', '/api/v1/sandboxes/{id}/logs', `/api/v1/sandboxes/${String(id)}/logs?tail_bytes=1000`);
    expect([logs.status, logs.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);

    const found = await ask('GET', '/api/v1/sandboxes/search', '/api/v1/sandboxes/search?status__eq=RUNNING&sandbox_spec_id__eq=workspace');
    expect(items(found).map((sandbox) => sandbox['id'])).toContain(id);
    expect(ids(await ask('GET', '/api/v1/sandboxes', '/api/v1/sandboxes?status__eq=RUNNING&sandbox_spec_id__eq=workspace'))).toContain(id);
    for (let twice = 0; twice < 2; twice += 1) {
      expect((await ask('DELETE', '/api/v1/sandboxes/{id}', `/api/v1/sandboxes/${String(id)}`)).status).toBe(204);
    }
    expect((await ask('GET', '/api/v1/sandboxes/{id}', `/api/v1/sandboxes/${String(id)}`)).status).toBe(404);
  });

  test('executions: run, read, write, signal, resize, attach and delete', () => callEachOfExecutions(server.url, key, ask, succeeded));
  test('files: write, read, list, make, pack, unpack and remove', () => callEachOfFiles(ask));
  test('changes and publish', () => callEachOfChanges(ask));
  test('the caller, keys, a login, the overview and the settings', () => callEachOfAdministration(ask, server));

  test('a sandbox in quarantine', async () => {
    const { id, admin } = await quarantine(server, call);
    expect(object(await ask('POST', '/api/v1/sandboxes/{id}/adopt', `/api/v1/sandboxes/${id}/adopt`, { user_id: 'ann' }, {}, admin))).toMatchObject({ id, created_by_user_id: 'ann' });
  });

  test('sandbox specs', async () => {
    const answer = await ask('GET', '/api/v1/sandbox-specs/search', '/api/v1/sandbox-specs/search');
    expect(items(answer)).toMatchObject([{ id: 'workspace', ports: [{ name: 'FILES', port: 8000 }], created_at: expect.any(String) }]);
    expect((await ask('GET', '/api/v1/sandbox-specs', '/api/v1/sandbox-specs')).body).toEqual(answer.body);
  });

  test('a conversation from its start to its deletion', async () => {
    const name = basename(project);
    const created = await ask('POST', '/api/v1/app-conversations', '/api/v1/app-conversations', { title: 'Fix the bug', selected_repository: name });
    expect([created.status, created.headers.get('location')]).toEqual([201, expect.stringContaining('/api/v1/app-conversations/')]);
    const { id } = object(created);
    const path = `/api/v1/app-conversations/${String(id)}`;
    const one = () => ask('GET', '/api/v1/app-conversations/{id}', path);
    const ready = object(await until(one, (answer) => object(answer)['start_status'] === 'READY'));
    expect(ready).toMatchObject({ title: 'Fix the bug', sandbox_status: 'RUNNING', git_provider: 'local', selected_repository: name, execution_status: null });
    await callEachOfHistory(String(id), ask);
    const gone = [await ask('DELETE', '/api/v1/app-conversations/{id}', path), await one(), await ask('GET', '/api/v1/sandboxes/{id}', `/api/v1/sandboxes/${String(ready['sandbox_id'])}`)];
    expect(gone.map(({ status }) => status)).toEqual([204, 404, 404]);
  });

  test('conversations are sorted, filtered and paged without loss while others are added and deleted', async () => {
    const { id: sandboxId } = object(await ask('POST', '/api/v1/sandboxes', '/api/v1/sandboxes'));
    const make = async (title: string) => String(object(await ask('POST', '/api/v1/app-conversations', '/api/v1/app-conversations', { title, sandbox_id: sandboxId }))['id']);
    const made: string[] = [];
    for (let number = 0; number < 7; number += 1) made.push(await make(`Number ${number} of 100%_x`));
    await until(
      () => ask('GET', '/api/v1/app-conversations', `/api/v1/app-conversations?sandbox_id__eq=${String(sandboxId)}`),
      (answer) => items(answer).every(({ start_status: status }) => status === 'READY'),
    );

    const list = async (query: string) => ask('GET', '/api/v1/app-conversations', `/api/v1/app-conversations?${query}`);
    expect(ids(await list(`sort_order=CREATED_AT&sandbox_id__eq=${String(sandboxId)}`))).toEqual(made);
    expect(ids(await list(`sandbox_id__eq=${String(sandboxId)}`))).toEqual(made.toReversed());
    for (const order of ['UPDATED_AT', 'UPDATED_AT_DESC']) {
      const updated = items(await list(`sort_order=${order}&sandbox_id__eq=${String(sandboxId)}`)).map((one) => String(one['updated_at']));
      expect(updated).toEqual(order === 'UPDATED_AT' ? updated.toSorted() : updated.toSorted().toReversed());
    }
    expect(ids(await list(`title__contains=${encodeURIComponent('NUMBER 3 OF 100%_')}`))).toEqual([made[3]]);
    expect(ids(await list(`ids=${made[1]}&ids=${made[2]}&ids=none`))).toEqual([made[2], made[1]]);
    const fourth = items(await list(`ids=${made[4]}`))[0];
    const time = encodeURIComponent(String(fourth?.['created_at']));
    expect(ids(await list(`created_at__gte=${time}&sort_order=CREATED_AT&sandbox_id__eq=${String(sandboxId)}`))[0]).toBe(made[4]);
    expect(ids(await list(`created_at__lt=${time}&sandbox_id__eq=${String(sandboxId)}`))[0]).toBe(made[3]);

    const seen: string[] = [];
    let gone = '';
    for (let page: string | null = ''; page !== null; ) {
      const answer: Answer = await list(`limit=2&sandbox_id__eq=${String(sandboxId)}${page === '' ? '' : `&page_id=${page}`}`);
      seen.push(...ids(answer));
      page = object(answer)['next_page_id'] as string | null;
      if (seen.length === 2) {
        await make('Newer');
        gone = seen[0] ?? '';
        await ask('DELETE', '/api/v1/app-conversations/{id}', `/api/v1/app-conversations/${gone}`);
      }
    }
    expect(seen).toEqual(made.toReversed());
    expect(gone).toBe(made[6]);
    await ask('DELETE', '/api/v1/sandboxes/{id}', `/api/v1/sandboxes/${String(sandboxId)}`);
    expect(items(await list(`ids=${made[0]}`))).toMatchObject([{ sandbox_status: 'MISSING', start_status: 'READY' }]);
  });

  test('a conversation with an agent: messages, a permission, a cancelled turn and events', async () => {
    const agent = { id: 'agent', command: ['sh', '-c', 'exec sleep infinity'], agent: { protocol: 'acp', command: acpAgentCommand(), permissions: 'ask' } };
    const other = await startServer({ env: { SKEP_API_KEY: key }, config: { specs: [agent] } });
    onTestFinished(async () => {
      await other.close();
    });
    const client = createClient(other.url, key);
    const asked = (method: string, template: string, path: string, body?: unknown) => ask(method, template, path, body, undefined, client);
    const conversations = '/api/v1/app-conversations';
    const started = await asked('POST', conversations, conversations, { sandbox_spec_id: 'agent', title: 'With an agent' });
    const path = `${conversations}/${String(object(started)['id'])}`;
    const template = `${conversations}/{id}`;
    const say = async (text: string) => {
      const answer = await asked('POST', `${template}/messages`, `${path}/messages`, { content: [{ type: 'text', text }] });
      expect(answer.status).toBe(202);
      return object(answer)['message_id'];
    };
    const events = async () => items(await asked('GET', `${template}/events`, `${path}/events`));
    const told = async (kind: string, wanted: (data: Record<string, unknown>) => boolean) => {
      const find = (all: readonly Record<string, unknown>[]) => all.find((event) => event['kind'] === kind && wanted(event['data'] as Record<string, unknown>));
      return find(await until(events, (all) => find(all) !== undefined))?.['data'] as Record<string, unknown>;
    };
    const asking = await say(acpScript({ ask: { toolCallId: 'call', title: 'May I?', options: [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }] } }));
    const { permission_id } = await told('permission_requested', () => true);
    const permission = `${path}/permissions/${String(permission_id)}`;
    expect((await asked('POST', `${template}/permissions/{permission_id}`, permission, { option_id: 'yes' })).status).toBe(200);
    expect(await told('turn_ended', ({ message_id }) => message_id === asking)).toMatchObject({ stop_reason: 'end_turn' });

    const stalling = await say(acpScript({ stall: 'heeds' }));
    await told('message_chunk', ({ text }) => String(text).includes('stall'));
    expect((await asked('POST', `${template}/cancel`, `${path}/cancel`)).status).toBe(202);
    expect(await told('turn_ended', ({ message_id }) => message_id === stalling)).toMatchObject({ stop_reason: 'cancelled' });

    for (const [stream, at] of [[`${template}/events/stream`, `${path}/events/stream`], ['/api/v1/events/stream', '/api/v1/events/stream?after=0']] as const) {
      const left = new AbortController();
      const response = await fetch(other.url + at, { headers: { 'X-Session-API-Key': key }, signal: left.signal });
      expect([response.status, response.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/event-stream')]);
      let text = '';
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
        text += chunk;
        if (text.includes('event: start_step')) break;
      }
      left.abort();
      succeeded.add(`get ${stream}`);
    }
    expect(items(await asked('GET', '/api/v1/events', '/api/v1/events')).map(({ kind }) => kind)).toContain('sandbox_moved');
    await asked('DELETE', template, path);
  });

  test('a request that is repeated with the same idempotency key creates one sandbox', async () => {
    const headers = { 'Idempotency-Key': 'only-once' };
    const first = await ask('POST', '/api/v1/sandboxes', '/api/v1/sandboxes', {}, headers);
    const again = await ask('POST', '/api/v1/sandboxes', '/api/v1/sandboxes', {}, headers);
    expect([again.status, object(again)['id']]).toEqual([201, object(first)['id']]);
    expect((await ask('POST', '/api/v1/sandboxes', '/api/v1/sandboxes', { sandbox_spec_id: 'workspace' }, headers)).status).toBe(409);
    await ask('DELETE', '/api/v1/sandboxes/{id}', `/api/v1/sandboxes/${String(object(first)['id'])}`);
  });
});

test('the OpenAPI document has the fixed parts, and every operation was called above', () => {
  expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '0.53.0' } });
  expect(document.security).toBeUndefined();
  expect(document.components.securitySchemes).toEqual({ APIKeyHeader: expect.objectContaining({ type: 'apiKey', in: 'header', name: 'X-Session-API-Key' }) });
  expect(document.servers.map(({ url }) => url)).toEqual([server.url, 'http://127.0.0.1:3000']);
  const operations = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, path, operation })));
  expect(operations.map(({ name }) => name).toSorted()).toEqual([...succeeded].toSorted());
  expect(operations.find(({ path }) => path.endsWith('/microagents'))?.operation.operationId).toBe(
    'get_repository_microagents_api_user_repository__repository_name__microagents_get',
  );
  const open = new Set(['/health', '/ready', '/openapi.json', '/docs', '/api/v1/login']);
  for (const { path, operation, name } of operations) expect(operation.security, name).toEqual(open.has(path) ? [] : [{ APIKeyHeader: [] }]);
});
