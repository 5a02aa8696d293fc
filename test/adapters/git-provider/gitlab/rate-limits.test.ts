import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../../doubles/memory/index.ts';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import { list, simple, simpleListing } from '../support.ts';
import { hostOf, manyFiles, providerOf } from './support.ts';

describe('A rate limit', () => {
  const date = 'Thu, 01 Jan 2026 00:00:00 GMT';
  const reset = String(Date.UTC(2026, 0, 1, 0, 2, 5) / 1000);

  test.each<[string, Record<string, string>, number]>([
    ['Retry-After', { 'retry-after': '37', 'ratelimit-reset': '1' }, 37],
    ['Retry-After as a date', { 'retry-after': 'Thu, 01 Jan 2026 00:01:00 GMT', date }, 60],
    ["RateLimit-Reset, by the host's own clock", { 'ratelimit-reset': reset, 'ratelimit-remaining': '0', date }, 125],
    ['no header', {}, 60],
    ['invalid headers', { 'retry-after': 'soon', 'ratelimit-reset': 'later' }, 60],
    ['no seconds', { 'retry-after': '0' }, 1],
    ['a year', { 'retry-after': '31536000' }, 86_400],
  ])('is reported with the time to wait, and no request is sent until then: %s', async (_, headers, seconds) => {
    const host = await hostOf();
    await host.publish(simple);
    host.faults.add({ fault: { kind: 'throttle', headers }, times: 1 });
    // This clock is wrong by years if the host sends a date, since the date of the host counts then.
    const clock = createManualClock('date' in headers ? Date.UTC(2001, 0, 1) : undefined);
    const provider = providerOf(host, { clock });
    expect(await secondsOf(list(provider))).toBe(seconds);
    expect(host.counts()).toEqual({ commit: 1 });
    clock.advance(seconds * 1000 - 500);
    expect(await secondsOf(list(provider))).toBe(1);
    expect(await secondsOf(provider.find('acme/shop'))).toBe(1);
    expect(await provider.check()).toMatchObject({ ok: false });
    expect(host.counts()).toEqual({});
    clock.advance(2000);
    expect(await list(provider)).toEqual(simpleListing);
  });

  const tenSeconds = { kind: 'throttle', headers: { 'retry-after': '10' } } as const;

  test('stops a listing at once, and the next listing continues from there', async () => {
    const host = await hostOf();
    await host.publish(manyFiles(20));
    host.faults.add({ fault: tenSeconds, route: 'commits', after: 9, times: 1 });
    const clock = createManualClock();
    const provider = providerOf(host, { clock, concurrency: 1 });
    expect(await secondsOf(list(provider))).toBe(10);
    expect(host.counts()['commits']).toBe(10);
    clock.advance(10_000);
    expect(await list(provider)).toHaveLength(20);
    expect(host.counts()['commits']).toBe(11);
  });

  test('aborts the other requests of the listing, and the next listing repeats them', async () => {
    const host = await hostOf();
    await host.publish(manyFiles(20));
    host.faults.add({ fault: tenSeconds, route: 'commits', after: 9, times: 1 });
    // Requests after the refused one get no response before the refusal arrives.
    host.faults.add({ fault: { kind: 'stall' }, route: 'commits', after: 9 });
    const clock = createManualClock();
    const provider = providerOf(host, { clock, concurrency: 2 });
    expect(await secondsOf(list(provider))).toBe(10);
    // If the ninth request is answered before the refusal, an eleventh is sent. Otherwise the ninth is aborted.
    expect([10, 11]).toContain(host.counts()['commits']);
    host.faults.clear();
    clock.advance(10_000);
    expect(await list(provider)).toHaveLength(20);
    expect([11, 12]).toContain(host.counts()['commits']);
  });

  test('is respected as soon as RateLimit-Remaining is 0', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const headers = { 'ratelimit-remaining': '0', 'ratelimit-reset': reset, date };
    host.faults.add({ fault: { kind: 'headers', headers }, route: 'tree', times: 1 });
    const clock = createManualClock();
    const provider = providerOf(host, { clock });
    expect(await secondsOf(list(provider))).toBe(125);
    expect(host.counts()).toEqual({ commit: 1, tree: 1 });
    clock.advance(125_000);
    expect(await list(provider)).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1, commits: 2 });
  });
});

/** Returns how many seconds the failure says to wait. */
async function secondsOf(promise: Promise<unknown>): Promise<number> {
  const error = await promise.then(() => null, (error: unknown) => error);
  if (!isFailureOf(error, 'provider_rate_limited')) throw new Error('expected a limit', { cause: error });
  return error.context.retryAfterSeconds;
}
