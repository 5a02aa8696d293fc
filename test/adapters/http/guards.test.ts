import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { clientAddress } from '../../../src/adapters/http/authentication.ts';
import { Failure } from '../../../src/domain/failure.ts';
import { object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { startWorld } from './world.ts';

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
