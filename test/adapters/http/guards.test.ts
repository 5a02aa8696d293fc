import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { clientAddress } from '../../../src/adapters/http/authentication.ts';
import { createRouter } from '../../../src/adapters/http/index.ts';
import { Failure } from '../../../src/domain/failure.ts';
import { object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { startWorld, type World } from './world.ts';

const search = '/api/v1/sandboxes/search';

describe('limits', () => {
  test('of wrong keys apply to each client address, and do not stop valid keys', async () => {
    const world = await startWorld({ server: { failedLoginsPerMinute: 3 } });
    await world.ann('GET', search);
    const wrong = world.client('wrong');
    for (let tries = 0; tries < 3; tries += 1) expect(await wrong('GET', search)).toMatchObject({ status: 401 });
    const refused = await wrong('GET', search);
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited', limit: 'failed_logins_per_minute' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    // A valid key works, even if this address has not used it before.
    expect(await world.client(world.keys.ben)('GET', search)).toMatchObject({ status: 200 });
    expect(await world.ann('GET', search)).toMatchObject({ status: 200 });
    expect(await world.client(null)('GET', search)).toMatchObject({ status: 401 });
    expect(await world.client(null)('GET', '/health')).toMatchObject({ status: 200 });
    world.auth.revoke(world.keys.ann);
    expect(await world.ann('GET', search)).toMatchObject({ status: 429, body: { code: 'rate_limited', limit: 'failed_logins_per_minute' } });
    expect(world.lines.find(({ status }) => status === 429)).toMatchObject({ client: '127.0.0.1' });
  });

  test('of wrong keys do not count requests without a key', async () => {
    const world = await startWorld({ server: { failedLoginsPerMinute: 1 } });
    for (let tries = 0; tries < 5; tries += 1) expect(await world.client(null)('GET', search)).toMatchObject({ status: 401 });
  });

  test('of conversations apply to each owner', async () => {
    const world = await startWorld({ limits: { conversationsPerOwner: 1 } });
    const start = async (key: string) => await world.client(key)('POST', '/api/v1/app-conversations');
    const [first, second, bens] = [await start(world.keys.ann), await start(world.keys.ann), await start(world.keys.ben)];
    expect(second).toMatchObject({ status: 429, body: { code: 'conversation_limit_reached', limit: 'conversations_per_owner', max: 1, retry_after_seconds: 60 } });
    await world.ann('DELETE', `/api/v1/app-conversations/${String(object(first)['id'])}`);
    expect([first.status, bens.status, (await start(world.keys.ann)).status]).toEqual([201, 201, 201]);
  });

  test('name no longer wait than their window if the clock is set back', async () => {
    const world = await startWorld({ server: { requestsPerMinute: 1 } });
    expect(await world.ann('GET', search)).toMatchObject({ status: 200 });
    onTestFinished(() => void vi.useRealTimers());
    vi.setSystemTime(Date.now() - 3_600_000);
    const refused = await world.ann('GET', search);
    expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([429, 60]);
  });

  test('of requests apply to each key', async () => {
    const world = await startWorld({ server: { requestsPerMinute: 2 } });
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
    ['192.0.2.1:40000', '192.0.2.1'],
    ['[2001:db8::1]:40000', '2001:db8:0:0::/64'],
  ])('count the client address %s as %s', (ip, client) => {
    expect(clientAddress({ ip })).toBe(client);
  });
});

describe('the log', () => {
  test('has probes and scrapes at level debug, and the crash of a sandbox at level warn', async () => {
    const world = await startWorld();
    world.lines.length = 0;
    for (const path of ['/health', '/ready', '/metrics']) await world.client(null)('GET', path);
    await world.client(world.keys.admin)('GET', '/metrics');
    expect(world.lines.filter(({ message }) => message === 'request').map(({ level }) => level)).toEqual(['debug', 'debug', 'info', 'debug']);
    const { id } = object(await world.ann('POST', '/api/v1/sandboxes'));
    await until(async () => object(await world.ann('GET', `/api/v1/sandboxes/${String(id)}`))['status'], (status) => status === 'RUNNING');
    world.engine.crash(String(id));
    await until(() => world.lines.find(({ to }) => to === 'ERROR'), (line) => line !== undefined);
    expect(world.lines.filter(({ message }) => message === 'sandbox changed its status').map(({ to, level }) => [to, level])).toEqual([
      ['STARTING', 'info'], ['RUNNING', 'info'], ['ERROR', 'warn'],
    ]);
  });

  test('has one line for each request, without keys, queries and bodies', async () => {
    const world = await startWorld();
    world.lines.length = 0;
    await world.ann('POST', '/api/v1/app-conversations?token=in-the-query', { title: 'a private title' }, { 'X-Request-Id': 'from.the-client_1' });
    await world.client('a-wrong-key')('GET', `/nowhere/${'x'.repeat(500)}?key=in-the-query`);
    const lines = world.lines.filter(({ message }) => message === 'request');
    expect(lines).toEqual([
      {
        level: 'info', message: 'request', request_id: 'from.the-client_1', method: 'POST', route: '/api/v1/app-conversations',
        path: '/api/v1/app-conversations', status: 201, ms: expect.any(Number), key_name: 'ann-laptop', user: 'ann',
        created: expect.stringMatching(/^\/api\/v1\/app-conversations\/conv-/),
      },
      {
        level: 'info', message: 'request', request_id: expect.stringMatching(/^[\w-]{36}$/), method: 'GET', route: null,
        path: `/nowhere/${'x'.repeat(191)}...`, status: 401, ms: expect.any(Number), key_name: null, user: null, code: 'unauthorized', client: '127.0.0.1',
      },
    ]);
    expect(JSON.stringify(world.lines)).not.toMatch(new RegExp(`${world.keys.ann}|a-wrong-key|in-the-query|private title`));
  });

  test('has no status, but the client address, for a request that is aborted while its key is checked', async () => {
    const world = await startWorld();
    world.lines.length = 0;
    const [begun, checked] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()];
    vi.spyOn(world.auth, 'authenticate').mockImplementationOnce(async () => (begun.resolve(), await checked.promise));
    const left = new AbortController();
    const response = fetch(`${world.url}${search}`, { headers: { 'X-Session-API-Key': 'a-guess' }, signal: left.signal });
    await begun.promise;
    left.abort();
    await expect(response).rejects.toThrow('aborted');
    const line = await until(() => world.lines.find(({ message }) => message === 'request'), (found) => found !== undefined);
    expect(line).toMatchObject({ status: null, aborted: true, user: null, client: '127.0.0.1' });
    checked.reject(new Failure('unauthorized', {}));
  });

  test('uses the request id of the client if it is valid, and a new id otherwise', async () => {
    const world = await startWorld();
    const idFor = async (given: string) => (await world.client(null)('GET', '/health', undefined, { 'X-Request-Id': given })).headers.get('x-request-id');
    expect(await idFor('abc.DEF_1-2')).toBe('abc.DEF_1-2');
    for (const given of ['', 'two words', 'x'.repeat(65), '{"a":1}']) expect(await idFor(given)).toMatch(/^[0-9a-f-]{36}$/);
  });
});

const fine = async () => ({ ok: true, detail: 'the file /home/somebody/skep.db answers' });
const store = { part: 'store', adapter: 'sqlite', check: fine };

describe('readiness', () => {
  test('is 503 if the store does not answer, with the cause only in the log', async () => {
    const world = await startWorld();
    const broken = await createWorldOf(world, [
      { ...store, check: async () => ({ ok: false, detail: 'the file /home/somebody/skep.db is gone' }) },
      { part: 'runtime', adapter: 'process', check: fine },
    ]);
    const answer = await broken('/ready');
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(await answer.json()).toEqual({
      status: 'not_ready',
      parts: [
        { part: 'store', adapter: 'sqlite', ok: false, detail: 'does not answer; the log says why' },
        { part: 'runtime', adapter: 'process', ok: true, detail: 'answers' },
      ],
    });
    expect(world.lines.filter(({ level }) => level === 'warn')).toMatchObject([{ part: 'store', detail: 'the file /home/somebody/skep.db is gone' }]);
    expect((await broken('/health')).status).toBe(200);
  });

  test('is 200 and degraded if a git host or the runtime does not answer', async () => {
    const world = await startWorld();
    let asked = 0;
    const ask = await createWorldOf(world, [
      store,
      { part: 'runtime', adapter: 'docker', check: () => (asked += 1, new Promise(() => undefined)) },
      { part: 'git', adapter: 'github', check: async () => ({ ok: false, detail: 'the rate limit is reached' }) },
      { part: 'git', adapter: 'gitlab', check: fine },
    ]);
    for (let time = 0; time < 3; time += 1) {
      const answer = await ask('/ready');
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({ status: 'degraded', parts: [{ ok: true }, { ok: false }, { ok: false }, { ok: true }] });
    }
    expect(asked).toBe(1);
  });

  test.each([
    ['credential', 'refuses the credential'],
    ['rate_limit', 'limits the rate of requests'],
  ] as const)('says what a git host refuses (%s), and the log has the details', async (refusal, text) => {
    const world = await startWorld();
    const refused = { ok: false, refusal, detail: 'what to do' };
    const ask = await createWorldOf(world, [store, { part: 'git', adapter: 'github', check: async () => refused }]);
    const part = { part: 'git', adapter: 'github', ok: false, detail: `${text}; the log says why` };
    expect(await (await ask('/ready')).json()).toMatchObject({ status: 'degraded', parts: [{ ok: true }, part] });
    expect(world.lines.filter(({ level }) => level === 'warn')).toMatchObject([{ message: `a part ${text}`, detail: 'what to do' }]);
  });

  test.each([
    ['throws', async () => await Promise.reject(new Error('the engine is gone'))],
    ['does not end', () => new Promise<never>(() => {})],
  ] as const)('returns after a check that %s, and the log has both changes', async (_how, fail) => {
    const world = await startWorld();
    let [ahead, checks] = [0, 0];
    const clock = { ...world.skep.clock, now: () => Date.now() + ahead };
    const ask = await createWorldOf({ ...world, skep: { ...world.skep, clock } }, [{ ...store, check: () => ((checks += 1) === 1 ? fail() : fine()) }]);
    expect((await ask('/ready')).status).toBe(503);
    expect((await ask('/ready')).status).toBe(503);
    expect(checks).toBe(1);
    expect(world.lines.filter(({ level }) => level === 'warn')).toMatchObject([{ part: 'store', message: 'a part does not answer' }]);
    ahead = 15_000;
    expect((await ask('/ready')).status).toBe(200);
    expect(world.lines.some(({ message }) => message === 'a part answers again')).toBe(true);
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('is checked once for many requests at a time', async () => {
    const world = await startWorld();
    let checks = 0;
    const { promise: hold, resolve: release } = Promise.withResolvers<void>();
    const ask = await createWorldOf(world, [{ ...store, check: async () => (checks += 1, await hold, await fine()) }]);
    const answers = Promise.all(Array.from({ length: 20 }, () => ask('/ready')));
    await until(() => checks, (count) => count > 0);
    release();
    for (const { status } of await answers) expect(status).toBe(200);
    await ask('/ready');
    expect(checks).toBe(1);
  });
});

/** Returns a client for a router over the same deployment with other parts. */
async function createWorldOf(world: World, parts: World['skep']['parts']): Promise<(path: string) => Promise<Response>> {
  const { default: express } = await import('express');
  const app = express().use(createRouter({ ...world.skep, parts }));
  const { promise: listening, resolve } = Promise.withResolvers<void>();
  const server = app.listen(0, '127.0.0.1', () => resolve());
  await listening;
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return (path) => fetch(`http://127.0.0.1:${port}${path}`, { headers: { Connection: 'close' } });
}
