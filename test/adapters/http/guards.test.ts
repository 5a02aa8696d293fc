import { afterEach, describe, expect, test } from 'vitest';
import { clientAddress } from '../../../src/adapters/http/authentication.ts';
import { createRouter, type HttpServerOptions } from '../../../src/adapters/http/index.ts';
import { until } from '../../support/until.ts';
import { createWorld, type World } from './world.ts';

const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

async function started(server: HttpServerOptions = {}): Promise<World> {
  const world = await createWorld({ server });
  worlds.push(world);
  return world;
}

const search = '/api/v1/sandboxes/search';

describe('limits', () => {
  test('of wrong keys, for each client address', async () => {
    const world = await started({ failedLoginsPerMinute: 3 });
    await world.ann('GET', search);
    const wrong = world.client('wrong');
    for (let tries = 0; tries < 3; tries += 1) expect(await wrong('GET', search)).toMatchObject({ status: 401 });
    const refused = await wrong('GET', search);
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited', limit: 'failed_logins_per_minute' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    // No further key is tried, not even a right one; one that was right before still works.
    expect(await world.client(world.keys.ben)('GET', search)).toMatchObject({ status: 429 });
    expect(await world.ann('GET', search)).toMatchObject({ status: 200 });
    expect(await world.client(null)('GET', search)).toMatchObject({ status: 401 });
    expect(await world.client(null)('GET', '/health')).toMatchObject({ status: 200 });
    world.auth.revoke(world.keys.ann);
    expect((await world.ann('GET', search)).status).toBeGreaterThanOrEqual(401);
    expect(world.lines.find(({ status }) => status === 429)).toMatchObject({ client: '127.0.0.1' });
  });

  test('requests without a key are no tries', async () => {
    const world = await started({ failedLoginsPerMinute: 1 });
    for (let tries = 0; tries < 5; tries += 1) expect(await world.client(null)('GET', search)).toMatchObject({ status: 401 });
  });

  test('of requests, for each key', async () => {
    const world = await started({ requestsPerMinute: 2 });
    for (let count = 0; count < 2; count += 1) expect(await world.ann('GET', search)).toMatchObject({ status: 200 });
    const refused = await world.ann('GET', '/nowhere');
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited', limit: 'requests_per_minute' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await world.client(world.keys.ben)('GET', search)).toMatchObject({ status: 200 });
  });

  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['::ffff:10.0.0.7', '10.0.0.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('the client at %s is counted as %s', (ip, client) => {
    expect(clientAddress({ ip })).toBe(client);
  });
});

describe('the log', () => {
  test('has one line for each request, and nothing secret', async () => {
    const world = await started();
    world.lines.length = 0;
    await world.ann('POST', '/api/v1/app-conversations?token=in-the-query', { title: 'a private title' }, { 'X-Request-Id': 'from.the-client_1' });
    await world.client('a-wrong-key')('GET', `/nowhere/${'x'.repeat(500)}?key=in-the-query`);
    const lines = world.lines.filter(({ message }) => message === 'request');
    expect(lines).toEqual([
      {
        level: 'info', message: 'request', request_id: 'from.the-client_1', method: 'POST', route: '/api/v1/app-conversations',
        path: '/api/v1/app-conversations', status: 201, ms: expect.any(Number), key_name: 'ann-laptop', user: 'ann',
      },
      {
        level: 'info', message: 'request', request_id: expect.stringMatching(/^[\w-]{36}$/), method: 'GET', route: null,
        path: `/nowhere/${'x'.repeat(191)}...`, status: 401, ms: expect.any(Number), key_name: null, user: null, code: 'unauthorized', client: '127.0.0.1',
      },
    ]);
    expect(JSON.stringify(world.lines)).not.toMatch(new RegExp(`${world.keys.ann}|a-wrong-key|in-the-query|private title`));
  });

  test('knows a request by the id that its client gave it, if that is sane', async () => {
    const world = await started();
    const idFor = async (given: string) => (await world.client(null)('GET', '/health', undefined, { 'X-Request-Id': given })).headers.get('x-request-id');
    expect(await idFor('abc.DEF_1-2')).toBe('abc.DEF_1-2');
    for (const given of ['', 'two words', 'x'.repeat(65), '{"a":1}']) expect(await idFor(given)).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('readiness', () => {
  test('tells whether each part answers, and no more; the log tells why', async () => {
    const world = await started();
    const broken = await createWorldOf(world, async () => [
      { part: 'store', adapter: 'sqlite', ok: true, detail: 'the file /home/somebody/skep.db answers' },
      { part: 'runtime', adapter: 'process', ok: false, detail: 'the folder /home/somebody/sandboxes is gone' },
    ]);
    const answer = await broken('/ready');
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(await answer.json()).toEqual({
      status: 'not_ready',
      parts: [
        { part: 'store', adapter: 'sqlite', ok: true, detail: 'answers' },
        { part: 'runtime', adapter: 'process', ok: false, detail: 'does not answer; the log says why' },
      ],
    });
    expect(world.lines.filter(({ level }) => level === 'warn')).toMatchObject([{ part: 'runtime', detail: 'the folder /home/somebody/sandboxes is gone' }]);
    expect((await broken('/health')).status).toBe(200);
  });

  test('is looked up once, however many ask at a time', async () => {
    const world = await started();
    let checks = 0;
    const { promise: hold, resolve: release } = Promise.withResolvers<void>();
    const ask = await createWorldOf(world, async () => {
      checks += 1;
      await hold;
      return [];
    });
    const answers = Promise.all(Array.from({ length: 20 }, () => ask('/ready')));
    await until(() => checks, (count) => count > 0);
    release();
    for (const { status } of await answers) expect(status).toBe(200);
    await ask('/ready');
    expect(checks).toBe(1);
  });
});

/** Asks a router over the same deployment, in which the parts are checked in another way. */
async function createWorldOf(world: World, check: World['skep']['check']): Promise<(path: string) => Promise<Response>> {
  const { default: express } = await import('express');
  const app = express().use(createRouter({ ...world.skep, check }));
  const { promise: listening, resolve } = Promise.withResolvers<void>();
  const server = app.listen(0, '127.0.0.1', () => resolve());
  await listening;
  worlds.push({ ...world, close: async () => void server.close() });
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return (path) => fetch(`http://127.0.0.1:${port}${path}`, { headers: { Connection: 'close' } });
}
