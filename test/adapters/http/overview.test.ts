import { expect, test } from 'vitest';
import { createHttpServer } from '../../../src/adapters/http/index.ts';
import { unlimited } from '../../../src/domain/admission-limits.ts';
import { unlimitedConversations } from '../../../src/domain/conversation-limits.ts';
import { someConversation, someSandbox } from '../../contracts/records.ts';
import { createClient, object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { coderSpec, plainSpec, startWorld } from './world.ts';

const path = '/api/v1/overview';
const sandboxes = '/api/v1/sandboxes';

test('the overview has the counts, starts and limits of its owner', async () => {
  const world = await startWorld({ limits: { runningPerOwner: 5 } });
  const id = String(object(await world.ann('POST', sandboxes))['id']);
  await until(() => world.ann('GET', `${sandboxes}/${id}`), (answer) => object(answer)['status'] === 'RUNNING');
  expect(await world.ann('GET', path)).toMatchObject({
    status: 200,
    body: {
      scope: 'own',
      sandboxes: { by_status: { RUNNING: 1, ERROR: 0 }, in_quarantine: 0 },
      problems: [],
      starts: { succeeded: 1, failed: 0, from_pool: 0, p50_ms: expect.any(Number), p95_ms: expect.any(Number) },
      limits: [
        { limit: 'running_per_owner', max: 5, used: 1, user_id: 'ann' },
        { limit: 'existing_per_owner', max: null, used: 1, user_id: 'ann' },
        { limit: 'conversations_per_owner', max: null, used: 0, user_id: 'ann' },
      ],
      parts: expect.arrayContaining([{ part: 'store', adapter: 'memory', ok: true, detail: 'answers' }]),
      deployment: null,
    },
  });
  const own = object(await world.client(world.keys.ben)('GET', path));
  expect(own).toMatchObject({ sandboxes: { by_status: { RUNNING: 0 } }, starts: { succeeded: 0, p50_ms: null }, upcoming: [] });
  expect(await world.client(null)('GET', path)).toMatchObject({ status: 401 });
});

test('the overview lists failed sandboxes and conversations with their reason', async () => {
  const world = await startWorld({ specs: [plainSpec, coderSpec] });
  const now = Date.now();
  const reason = { code: 'image_not_found', image: 'acme/shop:2', registry: 'Docker Hub' } as const;
  await world.store.sandboxes.insert(someSandbox('sb-failed', { status: 'ERROR', statusReason: reason, statusSince: now }), unlimited);
  await world.store.conversations.insert(
    someConversation('conv-failed', { title: 'Broken', startStatus: 'ERROR', statusReason: { code: 'start_failed', cause: reason }, updatedAt: now }),
    undefined, [], unlimitedConversations,
  );
  const { problems } = object(await world.ann('GET', path));
  expect(problems).toMatchObject([
    { kind: 'sandbox', id: 'sb-failed', status: 'ERROR', status_reason: { code: 'image_not_found' }, status_detail: expect.stringContaining('acme/shop:2'), title: null },
    { kind: 'conversation', id: 'conv-failed', status: 'ERROR', title: 'Broken', status_reason: { code: 'start_failed' } },
  ]);
});

test('the overview of an administrator has pools, disk, memory and limits of the whole deployment, and details of its parts', async () => {
  const disk = { totalBytes: 1000, freeBytes: 50 };
  const world = await startWorld({ specs: [{ ...plainSpec, pool: { size: 1 } }], disk, limits: { running: 9 } });
  const admin = world.client(world.keys.admin);
  const seen = async () => object(await admin('GET', path));
  world.faults.git = new Error('connect ECONNREFUSED 10.0.0.7');
  world.checkouts.check = () => {
    throw new Error('not in a promise');
  };
  await until(seen, (body) => (body['deployment'] as { disk: unknown }).disk !== null);
  expect(await seen()).toMatchObject({
    scope: 'all',
    limits: expect.arrayContaining([{ limit: 'running', max: 9, used: 0, user_id: null }, { limit: 'running_per_owner', max: null, used: 0, user_id: null }]),
    deployment: {
      pools: [{ sandbox_spec_id: 'plain', target: 1, hits: 0, misses: 0, failure_detail: null, failure_reason: null }],
      disk: { total_bytes: 1000, free_bytes: 50, used_percent: 95, limit_percent: 90 },
      memory: { agents_held_bytes: 0, agents_max_bytes: 268_435_456 },
    },
    parts: expect.arrayContaining([
      { part: 'store', adapter: 'memory', ok: true, detail: expect.stringContaining('SQLite') },
      ...['git', 'checkout'].map((part) => ({ part, adapter: 'memory', ok: false, detail: 'the check failed' })),
    ]),
  });
  expect(object(await world.ann('GET', path))).toMatchObject({
    deployment: null, parts: expect.arrayContaining([{ part: 'git', adapter: 'memory', ok: false, detail: 'does not answer; the log says why' }]),
  });
});

test('an administrator gets the overview of all owners as metrics', async () => {
  const world = await startWorld({ specs: [{ ...plainSpec, pool: { size: 1 } }], limits: { running: 9 } });
  await world.store.sandboxes.insert(someSandbox('sb-failed', { status: 'ERROR' }), unlimited);
  const scrape = async (key: string) => await fetch(`${world.url}/metrics`, { headers: { Authorization: `Bearer ${key}` } });
  const answer = await scrape(world.keys.admin);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
  const text = await answer.text();
  const lines = text.trimEnd().split('\n');
  expect(lines.filter((line) => !/^(?:# (?:HELP|TYPE) [a-z_]+ .+|[a-z_]+(?:\{(?:[a-z_]+="[^"]*",?)+\})? [0-9.e+-]+)$/.test(line))).toEqual([]);
  expect(lines).toEqual(expect.arrayContaining([
    '# TYPE skep_sandboxes gauge', 'skep_sandboxes{status="ERROR"} 1', 'skep_sandboxes{status="PAUSED"} 0', 'skep_limit_max{limit="running"} 9',
    'skep_conversations{start_status="READY"} 0', 'skep_pool_requests_total{spec="plain",result="hit"} 0', 'skep_part_up{part="store",adapter="memory"} 1',
  ]));
  expect(text).toMatch(/^process_resident_memory_bytes \d{7,}$/m);
  // No sandbox was started, so the time of a start is not known.
  expect(text).not.toContain('skep_sandbox_start_seconds');
  expect((await scrape(world.keys.ann)).status).toBe(403);
});

test('only an administrator can read the settings', async () => {
  const world = await startWorld();
  const settings = [{ key: 'api_key', variable: 'SKEP_API_KEY', source: 'environment', value: null, isSecret: true, form: 'a key' }] as const;
  const server = await createHttpServer(world.skep, { port: 0, settings, dashboard: false });
  const get = async (key: string) => await createClient(server.url, key)('GET', '/api/v1/settings');
  expect(await get(world.keys.admin)).toMatchObject({
    status: 200, body: { items: [{ key: 'api_key', variable: 'SKEP_API_KEY', source: 'environment', value: null, is_secret: true, form: 'a key' }] },
  });
  expect(await get(world.keys.ann)).toMatchObject({ status: 403, body: { code: 'forbidden', access: 'admin' } });
  await server.close();
});
