import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createHttpClient, type HttpRequest, isExhausted, rateLimitIn, withBudget } from '../../../src/adapters/git-provider/retrying-http-client.ts';
import { providerFailures } from '../../../src/adapters/shared/provider-failures.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { createManualClock } from '../../doubles/memory/index.ts';
import { deadUrl, failureOf, hurriedClock, secondsOf } from './support.ts';

type Answer = (response: ServerResponse) => unknown;

const ok: Answer = (response) => response.end('fine');
const reset: Answer = (response) => response.socket?.resetAndDestroy();
const cut: Answer = (response) => response.writeHead(200, { 'content-length': '100' }).write('half', () => response.socket?.destroy());

function status(code: number, headers: Record<string, string> = {}): Answer {
  return (response) => response.writeHead(code, { date: '', ...headers }).end();
}

const redirectTarget: HttpRequest['redirectTarget'] = (location, from) => new URL(location, from);

/** Starts a host that gives these answers, and repeats the last one. */
async function start(answers: readonly Answer[], options: Partial<Parameters<typeof createHttpClient>[0]> = {}) {
  const host = { requests: 0, atOnce: 0, most: 0 };
  const server = createServer((_, response) => {
    host.requests += 1;
    host.atOnce += 1;
    host.most = Math.max(host.most, host.atOnce);
    response.on('close', () => (host.atOnce -= 1));
    answers[Math.min(host.requests, answers.length) - 1]?.(response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const clock = options.clock ?? hurriedClock();
  const client = createHttpClient({
    clock,
    failures: providerFailures('double'),
    concurrency: 4,
    maxResponseBytes: 1000,
    maxRequests: 100,
    maxBytes: 10_000,
    rateLimitOf: ({ status, headers }) => (status === 429 || isExhausted(headers, 'ratelimit') ? rateLimitIn(headers, 'ratelimit', status === 429, clock) : null),
    ...options,
  });
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const send = async (more: Partial<HttpRequest> = {}, signal = neverAborts): Promise<number> =>
    (await client.send({ url, headers: {}, ...more }, signal)).status;
  return { host, send };
}

describe('A temporary error', () => {
  const passing: readonly (readonly [string, Answer])[] = [
    ['502', status(502)], ['503', status(503)], ['504', status(504)], ['a reset connection', reset], ['an answer that is cut off', cut],
  ];

  test.each(passing)('is retried twice: %s', async (_, answer) => {
    const clock = hurriedClock();
    const { host, send } = await start([answer, answer, ok], { clock });
    expect(await send()).toBe(200);
    expect(host.requests).toBe(3);
    expect(clock.pauses).toEqual([200, 800]);
  });

  test.each(passing)('is not retried a third time: %s', async (what, answer) => {
    const { host, send } = await start([answer]);
    if (/^\d/u.test(what)) expect(await send()).toBe(Number(what));
    else expect(await failureOf(send())).toMatch(/^provider_failed: .*connection_lost/u);
    expect(host.requests).toBe(3);
  });

  test.each([['0', 0], ['3', 3000]])('is retried after the time in Retry-After: %s', async (value, pause) => {
    const clock = hurriedClock();
    const { send } = await start([status(503, { 'retry-after': value }), ok], { clock });
    expect(await send()).toBe(200);
    expect(clock.pauses).toEqual([pause]);
  });

  test('is not retried if the time in Retry-After is too long, or if the caller expects it', async () => {
    const { host, send } = await start([status(503, { 'retry-after': '3600' }), status(502)]);
    expect(await send()).toBe(503);
    expect(await send({ acceptedStatuses: [502] })).toBe(502);
    expect(host.requests).toBe(2);
  });
});

test.each([400, 401, 404, 418, 500])('a permanent error is not retried: %i', async (code) => {
  const { host, send } = await start([status(code)]);
  expect(await send()).toBe(code);
  expect(host.requests).toBe(1);
});

test.each([['unreachable', deadUrl], ['host_unknown', async () => 'https://github.invalid']])('a host is %s', async (code, urlOf) => {
  const { send } = await start([ok]);
  expect(await failureOf(send({ url: new URL(await urlOf()) }))).toMatch(new RegExp(`^provider_failed: .*${code}`, 'u'));
});

describe('A rate limit', () => {
  const date = 'Thu, 01 Jan 2026 00:00:00 GMT';
  const reset = String(Date.UTC(2026, 0, 1, 0, 2, 5) / 1000);

  test.each<[string, number, Record<string, string>, number]>([
    ['Retry-After', 429, { 'retry-after': '37', 'ratelimit-reset': '1' }, 37],
    ['Retry-After as a date', 429, { 'retry-after': 'Thu, 01 Jan 2026 00:01:00 GMT', date }, 60],
    ["the reset time, by the host's own clock", 429, { 'ratelimit-reset': reset, 'ratelimit-remaining': '0', date }, 125],
    ['a reset time that is over', 429, { 'ratelimit-reset': '1', 'ratelimit-remaining': '0', date }, 1],
    ['no header', 429, {}, 60],
    ['invalid headers', 429, { 'retry-after': 'soon', 'ratelimit-reset': 'later' }, 60],
    ['no seconds', 429, { 'retry-after': '0' }, 1],
    ['a year', 429, { 'retry-after': '31536000' }, 86_400],
    ['the last request that was allowed', 200, { 'ratelimit-reset': reset, 'ratelimit-remaining': '0', date }, 125],
  ])('is reported with the time to wait, and no request is sent until then: %s', async (_, code, headers, seconds) => {
    // This clock is wrong by years if the host sends a date, since the date of the host counts then.
    const clock = createManualClock('date' in headers ? Date.UTC(2001, 0, 1) : undefined);
    const { host, send } = await start([status(code, headers), ok], { clock });
    expect(await (code === 200 ? send() : secondsOf(send()))).toBe(code === 200 ? 200 : seconds);
    clock.advance(seconds * 1000 - 500);
    expect(await secondsOf(send())).toBe(1);
    expect(host.requests).toBe(1);
    clock.advance(2000);
    expect(await send()).toBe(200);
  });

  test('is over if the clock is set back, and the next one counts by the new time', async () => {
    const clock = createManualClock();
    const limited = status(429, { 'retry-after': '60' });
    const { host, send } = await start([limited, limited, ok], { clock });
    expect(await secondsOf(send())).toBe(60);
    clock.jump(-3_600_000);
    expect(await secondsOf(send())).toBe(60);
    expect(host.requests).toBe(2);
    clock.advance(59_000);
    expect(await secondsOf(send())).toBe(1);
    expect(host.requests).toBe(2);
    clock.advance(1000);
    expect(await send()).toBe(200);
  });
});

test('a redirect is followed to where the caller says, but not in circles', async () => {
  const { host, send } = await start([status(301, { location: '/moved' }), ok]);
  expect(await send({ redirectTarget })).toBe(200);
  const circle = await start([status(301, { location: '/' })]);
  expect(await circle.send()).toBe(301);
  expect(await failureOf(circle.send({ redirectTarget }))).toMatch(/^provider_failed: .*circles/u);
  expect([host.requests, circle.host.requests]).toEqual([2, 5]);
});

describe('The limits', () => {
  test('of the bytes of an answer hold for every request', async () => {
    const { send } = await start([(response) => response.end('x'.repeat(500))], { maxResponseBytes: 499 });
    expect(await failureOf(send())).toMatch(/^provider_failed: .*too_large.*499 bytes/u);
    const large = await start([(response) => response.end('x'.repeat(500))]);
    expect(await failureOf(large.send({ maxResponseBytes: 400 }))).toMatch(/^provider_failed: .*too_large.*400 bytes/u);
    expect(await large.send()).toBe(200);
  });

  test('of requests and bytes hold for a piece of work, with its retries', async () => {
    const { host, send } = await start([status(502), ok], { maxRequests: 3 });
    await withBudget(async () => {
      expect(await send()).toBe(200);
      expect(await send()).toBe(200);
      expect(await failureOf(send())).toMatch(/^provider_failed: .*too_large.*3 requests/u);
    });
    expect(host.requests).toBe(3);
    await withBudget(async () => expect(await send()).toBe(200));
    const large = await start([(response) => response.end('x'.repeat(500))], { maxBytes: 999 });
    await withBudget(async () => {
      expect(await large.send()).toBe(200);
      expect(await failureOf(large.send())).toMatch(/^provider_failed: .*too_large.*999 bytes/u);
    });
  });

  test('of requests at once count each attempt', async () => {
    const { host, send } = await start([(response) => setTimeout(() => response.end(), 5)], { concurrency: 3 });
    await Promise.all(Array.from({ length: 20 }, () => send()));
    expect([host.requests, host.most]).toEqual([20, 3]);
  });
});

test('a signal ends a request that waits for its turn, for its answer or for a retry', async () => {
  const { host, send } = await start([status(503, { 'retry-after': '9' }), (response) => response.write('half')], { clock: createManualClock(), concurrency: 1 });
  const controller = new AbortController();
  const all = Promise.allSettled([send({}, controller.signal), send({}, controller.signal), send({}, controller.signal)]);
  await expect.poll(() => host.requests).toBe(2);
  const reason = new Error('left');
  controller.abort(reason);
  expect(await all).toEqual(Array.from({ length: 3 }, () => ({ status: 'rejected', reason })));
});
