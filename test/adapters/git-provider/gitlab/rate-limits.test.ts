import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../../doubles/memory/index.ts';
import { list, secondsOf, simple, simpleListing } from '../support.ts';
import { hostOf, manyFiles, providerOf } from './support.ts';

describe('A rate limit', () => {
  const date = 'Thu, 01 Jan 2026 00:00:00 GMT';
  const reset = String(Date.UTC(2026, 0, 1, 0, 2, 5) / 1000);

  const tenSeconds = { kind: 'throttle', headers: { 'retry-after': '10' } } as const;

  test('stops a listing at once, and the next listing continues from there', async () => {
    const host = await hostOf();
    await host.publish(manyFiles(20));
    host.faults.add({ fault: tenSeconds, route: 'commits', after: 9, times: 1 });
    const clock = createManualClock();
    const provider = providerOf(host, { clock, concurrency: 1 });
    expect(await secondsOf(list(provider))).toBe(10);
    expect(host.counts()['commits']).toBe(10);
    expect(await secondsOf(provider.find('acme/shop'))).toBe(10);
    expect(await provider.check()).toMatchObject({ ok: false });
    expect(host.counts()).toEqual({});
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
