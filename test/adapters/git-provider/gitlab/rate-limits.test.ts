import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../../doubles/memory/index.ts';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import { list, simple, simpleListing } from '../support.ts';
import { hostOf, manyFiles, providerOf } from './support.ts';

describe('the rate of requests is limited', () => {
  const date = 'Thu, 01 Jan 2026 00:00:00 GMT';
  const reset = String(Date.UTC(2026, 0, 1, 0, 2, 5) / 1000);

  test.each<[string, Record<string, string>, number]>([
    ['Retry-After', { 'retry-after': '37', 'ratelimit-reset': '1' }, 37],
    ['Retry-After as a date', { 'retry-after': 'Thu, 01 Jan 2026 00:01:00 GMT', date }, 60],
    ["RateLimit-Reset, by the host's own clock", { 'ratelimit-reset': reset, 'ratelimit-remaining': '0', date }, 125],
    ['nothing', {}, 60],
    ['nonsense', { 'retry-after': 'soon', 'ratelimit-reset': 'later' }, 60],
    ['a time that is over', { 'retry-after': '0' }, 1],
    ['a year', { 'retry-after': '31536000' }, 86_400],
  ])('the host says %s', async (_, headers, seconds) => {
    const host = await hostOf();
    await host.publish(simple);
    host.faults.add({ fault: { kind: 'throttle', headers }, times: 1 });
    // It is wrong by years, which only a host without a clock has to bear.
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

  test('in the middle of a listing: what waits is not sent, and the listing goes on from there', async () => {
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

  test('in the middle of a listing: what is under way beside the refusal is given up, and asked for again', async () => {
    const host = await hostOf();
    await host.publish(manyFiles(20));
    host.faults.add({ fault: tenSeconds, route: 'commits', after: 9, times: 1 });
    // Whatever comes after the refused one waits for an answer while the refusal arrives.
    host.faults.add({ fault: { kind: 'stall' }, route: 'commits', after: 9 });
    const clock = createManualClock();
    const provider = providerOf(host, { clock, concurrency: 2 });
    expect(await secondsOf(list(provider))).toBe(10);
    // The ninth is answered before the refusal, and then an eleventh is sent; or it is under way, and given up with it.
    expect([10, 11]).toContain(host.counts()['commits']);
    host.faults.clear();
    clock.advance(10_000);
    expect(await list(provider)).toHaveLength(20);
    expect([11, 12]).toContain(host.counts()['commits']);
  });

  test('an answer that was the last one for now', async () => {
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

/** How long the failure says to wait. */
async function secondsOf(promise: Promise<unknown>): Promise<number> {
  const error = await promise.then(() => null, (error: unknown) => error);
  if (!isFailureOf(error, 'provider_rate_limited')) throw new Error('expected a limit', { cause: error });
  return error.context.retryAfterSeconds;
}
