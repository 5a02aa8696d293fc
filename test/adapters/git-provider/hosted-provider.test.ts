import { describe, expect, test } from 'vitest';
import { createMemoryListingCache } from '../../../src/adapters/git-provider/listing-caches.ts';
import type { Fault } from '../../doubles/gitlab/index.ts';
import { createManualClock } from '../../doubles/memory/index.ts';
import { until } from '../../support/until.ts';
import { deadUrl, everything, failureOf, hurriedClock, list, simple, simpleListing } from './support.ts';
import { hostOf, providerOf } from './gitlab/support.ts';

describe('A listing from a slow or unreachable host', () => {
  test('fails with `provider_timeout` after the time limit of the whole listing', async () => {
    const host = await hostOf();
    await host.publish(simple);
    host.faults.add({ fault: { kind: 'stall' }, route: 'commits' });
    const clock = createManualClock();
    const provider = providerOf(host, { clock, timeoutMs: 5000 });
    const listing = failureOf(list(provider));
    await until(() => host.requests.length, (count) => count === 4);
    clock.advance(5000);
    expect(await listing).toBe('provider_timeout: {"provider":"gitlab","limitMs":5000}');
  });

  test('fails with `provider_failed` if the port is closed', async () => {
    const provider = providerOf(await hostOf(), { url: await deadUrl() });
    expect(await failureOf(list(provider))).toMatch(/^provider_failed: .*unreachable/u);
    expect(await provider.check()).toMatchObject({ ok: false, detail: expect.stringMatching(/can't be reached.*Check its URL/u) });
  });

  test.each<[Fault, RegExp]>([
    [{ kind: 'status', status: 500 }, /^provider_failed: /u],
    [{ kind: 'reset' }, /^provider_failed: /u],
    [{ kind: 'status', status: 401, body: { message: '401 Unauthorized' } }, /^provider_unauthorized: /u],
    [{ kind: 'status', status: 404, body: { message: '404 Project Not Found' } }, /^repository_not_found: /u],
    [{ kind: 'body', text: '{}' }, /^provider_failed: /u],
    [{ kind: 'throttle', headers: {} }, /^provider_rate_limited: /u],
  ])('fails even if the same listing is in the cache: %o', async (fault, message) => {
    const host = await hostOf();
    await host.publish(simple);
    const listingCache = createMemoryListingCache();
    await list(providerOf(host, { listingCache }));
    host.faults.add({ fault });
    expect(await failureOf(list(providerOf(host, { listingCache, clock: hurriedClock() })))).toMatch(message);
  });

  test('is not taken for an unreachable host if the host limits the rate of requests', async () => {
    const host = await hostOf();
    host.faults.add({ fault: { kind: 'throttle', headers: { 'retry-after': '600' } } });
    expect(await providerOf(host).check()).toEqual({ ok: false, refusal: 'rate_limit', detail: expect.stringMatching(/Try again later\.$/u) });
  });

  test('continues for the other callers if one aborts', async () => {
    const host = await hostOf();
    await host.publish(simple);
    host.delayMs = 20;
    const provider = providerOf(host);
    const controller = new AbortController();
    const leaving = provider.listFiles('acme/shop', everything, controller.signal);
    const staying = list(provider);
    await until(() => host.requests.length, (count) => count > 0);
    controller.abort(new Error('left'));
    await expect(leaving).rejects.toThrow('left');
    expect(await staying).toEqual(simpleListing);
    expect(host.counts()).toEqual({ commit: 1, tree: 1, commits: 2 });
  });

  test('has for each of several callers the files and the directory that it asked for', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const provider = providerOf(host);
    const only = (path: string) => provider.listFiles('acme/shop', { ...everything, accepts: (each) => each === path });
    const answers = await Promise.all([only('a.md'), only('deploy/b.md'), provider.listFiles('acme/shop', { directory: () => 'src', accepts: () => true })]);
    expect(answers.map(({ files }) => files.map(({ path }) => path))).toEqual([...simpleListing.map(([path]) => [path]), ['src/x']]);
  });

  test('fails when the provider closes, and so does every later one', async () => {
    const host = await hostOf();
    await host.publish(simple);
    host.faults.add({ fault: { kind: 'stall' } });
    const provider = providerOf(host);
    const running = failureOf(list(provider));
    await until(() => host.requests.length, (count) => count > 0);
    await provider.close();
    expect(await running).toMatch(/^provider_failed: .*closed/u);
    expect(await failureOf(list(provider))).toMatch(/^provider_failed: .*closed/u);
    expect(await provider.check()).toMatchObject({ ok: false });
  });
});
