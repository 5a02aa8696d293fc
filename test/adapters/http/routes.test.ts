import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Failure } from '../../../src/domain/failure.ts';
import { items, type Json, object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { createWorld, type World } from './world.ts';

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const microagents = '/api/user/repository/acme/shop/microagents';

async function startedSandbox(): Promise<string> {
  const id = String(object(await world.ann('POST', '/api/v1/sandboxes'))['id']);
  await until(() => world.ann('GET', `/api/v1/sandboxes/${id}`), (answer) => object(answer)['status'] === 'RUNNING');
  return id;
}

describe('microagents', () => {
  test.each([
    microagents,
    '/api/user/repository/acme%2Fshop/microagents',
    '/api/user/repository/acme%2fshop/microagents',
    '/api/user/repository/git.example.org/acme/shop/microagents',
    '/api/user/repository/git.example.org%2Facme/shop/microagents?ref=main',
  ])('are listed at %s', async (path) => {
    const { status, body } = await world.ann('GET', path);
    expect(status).toBe(200);
    expect(body).toEqual([{ name: 'deploy/aws', path: '.skep/microagents/deploy/aws.md', created_at: '2020-02-29T12:00:00.000Z' }]);
  });

  test('are listed for a repository whose name ends like the route', async () => {
    world.provider.put({ path: 'acme/microagents', defaultBranch: 'main', files: [] });
    expect(await world.ann('GET', '/api/user/repository/acme/microagents/microagents')).toMatchObject({ status: 200, body: [] });
    world.provider.put({ path: 'acme/microagents/content', defaultBranch: 'main', files: [] });
    expect(await world.ann('GET', '/api/user/repository/acme/microagents/content/microagents')).toMatchObject({ status: 200, body: [] });
  });

  const file = encodeURIComponent('.skep/microagents/deploy/aws.md');

  test.each([
    `${microagents}/content?file_path=${file}`,
    `/api/user/repository/acme%2Fshop/microagents/content?file_path=.skep/microagents/deploy/aws.md`,
    `/api/user/repository/git.example.org/acme/shop/microagents/content?ref=main&file_path=${file}`,
  ])('are returned with their content at %s', async (path) => {
    const answer = await world.ann('GET', path);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(answer.body).toEqual({
      name: 'deploy/aws',
      path: '.skep/microagents/deploy/aws.md',
      created_at: '2020-02-29T12:00:00.000Z',
      content: '# Deploy\n',
      triggers: ['deploy'],
      front_matter: { triggers: ['deploy'], type: 'knowledge' },
      front_matter_problem: null,
      git_provider: 'memory',
    });
  });

  test('are returned with their whole content and the problem if the front matter is broken', async () => {
    const content = '---\ntriggers: [\n---\ntext';
    world.provider.put({ path: 'acme/broken', defaultBranch: 'main', files: [{ path: '.skep/microagents/a.md', createdAt: 0, content }] });
    expect(await world.ann('GET', '/api/user/repository/acme/broken/microagents/content?file_path=.skep/microagents/a.md')).toMatchObject({
      status: 200,
      body: { content, triggers: [], front_matter: null, front_matter_problem: { code: 'not_yaml', detail: expect.any(String), line: 2 } },
    });
  });
});

describe('sandboxes', () => {
  test('are started, read, paused, resumed and deleted', async () => {
    const created = await world.ann('POST', '/api/v1/sandboxes');
    const { id } = object(created);
    expect(created.status).toBe(201);
    expect(created.headers.get('location')).toBe(`/api/v1/sandboxes/${String(id)}`);
    expect(created.body).toEqual({
      id: expect.stringMatching(/^[a-z0-9-]+$/),
      created_by_user_id: 'ann',
      sandbox_spec_id: 'plain',
      status: 'STARTING',
      status_detail: null,
      status_reason: null,
      pause_kind: null,
      paused_by: null,
      paused_reason: null,
      session_api_key: null,
      exposed_urls: null,
      metadata: {},
      created_at: expect.stringMatching(timestamp),
      updated_at: expect.stringMatching(timestamp),
      last_active_at: expect.stringMatching(timestamp),
      expires_at: null,
    });
    const path = `/api/v1/sandboxes/${String(id)}`;
    const running = await until(() => world.ann('GET', path), (answer) => object(answer)['status'] === 'RUNNING');
    expect(running.body).toMatchObject({
      session_api_key: expect.stringMatching(/^[\w-]{43}$/),
      exposed_urls: [{ name: 'AGENT_SERVER', port: 8000, url: `http://${String(id)}.invalid:8000` }],
    });
    const paused = await world.ann('POST', `${path}/pause`);
    expect(paused).toMatchObject({ status: 200, body: { status: 'PAUSED', pause_kind: 'freeze', session_api_key: null, exposed_urls: null } });
    const resumed = await world.ann('POST', `${path}/resume`);
    expect(resumed).toMatchObject({ status: 200, body: { status: 'RUNNING', pause_kind: null } });
    expect(await world.ann('POST', `${path}/pause`, { pause_kind: 'stop' })).toMatchObject({ body: { pause_kind: 'stop' } });
    expect(await world.ann('DELETE', path)).toMatchObject({ status: 204, body: '' });
    expect(await world.ann('DELETE', path)).toMatchObject({ status: 204, body: '' });
    expect(await world.ann('GET', path)).toMatchObject({ status: 404, body: { code: 'sandbox_not_found', sandbox_id: id } });
  });

  test('are started with the spec in the body, in the query, or in both', async () => {
    for (const [path, body] of [
      ['/api/v1/sandboxes', { sandbox_spec_id: 'plain' }],
      ['/api/v1/sandboxes?sandbox_spec_id=plain', undefined],
      ['/api/v1/sandboxes?sandbox_spec_id=plain', { sandbox_spec_id: 'plain' }],
      ['/api/v1/sandboxes', { sandbox_spec_id: null }],
    ] as const) {
      expect(await world.ann('POST', path, body)).toMatchObject({ status: 201, body: { sandbox_spec_id: 'plain' } });
    }
  });

  test('are listed page by page, each once and newest first', async () => {
    const made: string[] = [];
    for (let count = 0; count < 5; count += 1) made.push(await startedSandbox());
    const listed: Json[] = [];
    let query = '';
    do {
      const page = await world.ann('GET', `/api/v1/sandboxes/search?limit=2&status__eq=RUNNING&sandbox_spec_id__eq=plain${query}`);
      expect(items(page).length).toBeLessThanOrEqual(2);
      listed.push(...items(page));
      const next = object(page)['next_page_id'];
      query = typeof next === 'string' ? `&page_id=${next}` : '';
    } while (query !== '');
    const seen = new Set(listed.map(({ id }) => id));
    expect([...seen]).toEqual(expect.arrayContaining(made));
    expect(seen.size).toBe(listed.length);
    expect(listed).toEqual(listed.toSorted((a, b) => String(b['created_at']).localeCompare(String(a['created_at']))));
    expect(await world.ann('GET', '/api/v1/sandboxes/search?sandbox_spec_id__eq=gone')).toMatchObject({ body: { items: [], next_page_id: null } });
  });

  test('are not found by another owner', async () => {
    const id = await startedSandbox();
    const ben = world.client(world.keys.ben);
    expect(await ben('GET', `/api/v1/sandboxes/${id}`)).toMatchObject({ status: 404, body: { code: 'sandbox_not_found' } });
    expect(await ben('DELETE', `/api/v1/sandboxes/${id}`)).toMatchObject({ status: 404 });
    expect(await ben('GET', '/api/v1/sandboxes/search')).toMatchObject({ body: { items: [] } });
  });
});

describe('conversations', () => {
  const conversations = '/api/v1/app-conversations';

  test('are started with all fields, read, listed with filters, and deleted', async () => {
    const created = await world.ann('POST', conversations, {
      title: 'Fix the build',
      sandbox_spec_id: 'plain',
      selected_repository: 'acme/shop',
      selected_branch: 'feature/one',
    });
    const { id, sandbox_id: sandboxId } = object(created);
    expect(created.status).toBe(201);
    expect(created.headers.get('location')).toBe(`${conversations}/${String(id)}`);
    expect(created.body).toEqual({
      id: expect.stringMatching(/^[a-z0-9-]+$/),
      created_by_user_id: 'ann',
      title: 'Fix the build',
      sandbox_id: expect.stringMatching(/^[a-z0-9-]+$/),
      sandbox_status: expect.any(String),
      sandbox_spec_id: 'plain',
      selected_repository: 'acme/shop',
      selected_branch: 'feature/one',
      git_provider: 'memory',
      start_status: expect.any(String),
      execution_status: null,
      status_detail: null,
      status_reason: null,
      pull_requests: [],
      created_at: expect.stringMatching(timestamp),
      updated_at: expect.stringMatching(timestamp),
      archived_at: null,
    });
    const path = `${conversations}/${String(id)}`;
    await until(() => world.ann('GET', path), (answer) => object(answer)['start_status'] === 'READY');
    for (const query of [`ids=${String(id)}&ids=another`, 'title__contains=THE%20BUILD', `sandbox_id__eq=${String(sandboxId)}`, 'created_at__gte=2020-01-01T00:00:00%2B02:00&sort_order=UPDATED_AT']) {
      expect(items(await world.ann('GET', `${conversations}?${query}`)).map((item) => item['id'])).toEqual([id]);
    }
    for (const query of ['ids=another', 'title__contains=nothing', 'created_at__lt=2020-01-01T00:00:00Z', 'updated_at__gte=2999-01-01T00:00:00Z']) {
      expect(await world.ann('GET', `${conversations}?${query}`)).toMatchObject({ body: { items: [], next_page_id: null } });
    }
    expect(await world.ann('DELETE', path)).toMatchObject({ status: 204, body: '' });
    expect(await world.ann('DELETE', path)).toMatchObject({ status: 204 });
    expect(await world.ann('GET', path)).toMatchObject({ status: 404, body: { code: 'conversation_not_found', conversation_id: id } });
    await until(() => world.ann('GET', `/api/v1/sandboxes/${String(sandboxId)}`), ({ status }) => status === 404);
  });

  test('are started without a body, and in an existing sandbox', async () => {
    expect(await world.ann('POST', conversations)).toMatchObject({ status: 201, body: { title: null, selected_repository: null } });
    const sandboxId = await startedSandbox();
    expect(await world.ann('POST', conversations, { sandbox_id: sandboxId })).toMatchObject({ status: 201, body: { sandbox_id: sandboxId } });
  });

  test('are listed page by page in each order', async () => {
    for (let count = 0; count < 3; count += 1) await world.ann('POST', conversations, { title: `page ${count}` });
    for (const order of ['CREATED_AT', 'CREATED_AT_DESC', 'UPDATED_AT', 'UPDATED_AT_DESC']) {
      const all = items(await world.ann('GET', `${conversations}?sort_order=${order}&title__contains=page`));
      const first = await world.ann('GET', `${conversations}?sort_order=${order}&title__contains=page&limit=1`);
      const next = String(object(first)['next_page_id']);
      const rest = await world.ann('GET', `${conversations}?sort_order=${order}&title__contains=page&page_id=${next}`);
      expect([...items(first), ...items(rest)].map(({ id }) => id)).toEqual(all.map(({ id }) => id));
    }
  });
});

describe('idempotency keys', () => {
  test('return the first response again, even if the git host is down', async () => {
    const headers = { 'Idempotency-Key': 'start-once' };
    const body = { selected_repository: 'acme/shop' };
    const first = await world.ann('POST', '/api/v1/app-conversations', body, headers);
    world.faults.git = new Failure('provider_timeout', { provider: 'memory', limitMs: 1 });
    try {
      const again = await world.ann('POST', '/api/v1/app-conversations', body, headers);
      expect([first.status, again.status, object(again)['id']]).toEqual([201, 201, object(first)['id']]);
      expect(await world.ann('POST', '/api/v1/app-conversations', { ...body, title: 'x' }, headers)).toMatchObject({ status: 409 });
    } finally {
      delete world.faults.git;
    }
  });

  test.each(['/api/v1/sandboxes', '/api/v1/app-conversations'])('are valid for one request of one owner: %s', async (path) => {
    const headers = { 'Idempotency-Key': 'once/only:1' };
    const first = await world.ann('POST', path, undefined, headers);
    const second = await world.ann('POST', path, {}, headers);
    expect([second.status, object(second)['id']]).toEqual([201, object(first)['id']]);
    expect(second.headers.get('location')).toBe(first.headers.get('location'));
    const other = await world.ann('POST', path, { sandbox_spec_id: 'plain' }, headers);
    expect(other).toMatchObject({ status: 409, body: { code: 'idempotency_conflict', key: 'once/only:1' } });
    expect(await world.client(world.keys.ben)('POST', path, { sandbox_spec_id: 'plain' }, headers)).toMatchObject({ status: 201 });
  });
});

test('health, readiness and the API reference need no key', async () => {
  const nobody = world.client(null);
  expect(await nobody('GET', '/health')).toMatchObject({ status: 200, body: { status: 'ok' } });
  expect(await nobody('GET', '/ready')).toMatchObject({ status: 200, body: { status: 'ready' } });
  expect(await nobody('GET', '/docs')).toMatchObject({ status: 200 });
  const head = await fetch(`${world.url}/health`, { method: 'HEAD' });
  expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '15', '']);
});
