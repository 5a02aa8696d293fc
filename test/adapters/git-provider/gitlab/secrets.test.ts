import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { createGitLabProvider, type GitLabOptions } from '../../../../src/adapters/git-provider/gitlab/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import type { GitProvider } from '../../../../src/ports/git-provider.ts';
import type { Fault } from '../../../doubles/gitlab/index.ts';
import { failureOf, hurriedClock, list, recordingCache, simple, simpleListing } from '../support.ts';
import { hostOf, providerOf, token } from './support.ts';

describe('The token', () => {
  test('is in no URL, and not in the cache', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const listingCache = recordingCache();
    const provider = providerOf(host, { listingCache });
    await list(provider);
    await provider.find('acme/shop');
    expect(await provider.check()).toMatchObject({ ok: true });
    expect(host.requests.map(({ target }) => target).join('\n')).not.toContain(token);
    expect(listingCache.seen.length).toBeGreaterThan(4);
    expect(listingCache.seen.join('\n')).not.toContain(token);
    expect(inspect(provider, { depth: null, showHidden: true })).not.toContain(token);
  });

  test.each<Fault>([
    { kind: 'status', status: 401, body: { message: '401 Unauthorized' } },
    { kind: 'status', status: 500, body: { message: token } },
    { kind: 'status', status: 302, headers: { location: `https://example.com/?${token}` } },
    { kind: 'throttle', headers: { 'x-token': token } },
    { kind: 'body', text: `"${token}"` },
    { kind: 'body', text: token },
    { kind: 'body', text: JSON.stringify({ id: token }) },
    { kind: 'reset' },
    { kind: 'cut' },
  ])('is in no failure, even if the host sends it back: %o', async (fault) => {
    const host = await hostOf();
    await host.publish(simple);
    host.faults.add({ fault });
    const provider = (): GitProvider => providerOf(host, { clock: hurriedClock() });
    await failureOf(list(provider()));
    await failureOf(provider().find('acme/shop'));
    expect(inspect(await provider().check())).not.toContain(token);
  });

  test.each(['', 'a b', 'line\nfeed', 'größe', '\0'])('is refused if it is invalid, and is not shown: %j', (bad) => {
    const create = (): unknown => createGitLabProvider({ token: `${bad}${bad === '' ? '' : 'secret'}`, clock: createSystemClock() });
    expect(create).toThrow(TypeError);
    expect(create).not.toThrow('secret');
  });
});

describe('A cached listing', () => {
  test('is not shared with another token, another host or a provider without a token', async () => {
    const [host, second] = [await hostOf(), await hostOf()];
    await host.publish(simple);
    await second.publish(simple.slice(0, 1));
    const listingCache = recordingCache();
    const options: Partial<GitLabOptions> = { listingCache };
    expect(await list(providerOf(host, options))).toEqual(simpleListing);
    expect(listingCache.scopes.size).toBe(1);
    expect(await failureOf(list(providerOf(host, { ...options, token: 'glpat-other' })))).toMatch(/^provider_unauthorized: /u);
    const nobody = createGitLabProvider({ url: host.url, clock: createSystemClock(), listingCache });
    expect(await failureOf(list(nobody))).toMatch(/^repository_not_found: /u);
    expect(await list(providerOf(second, options))).toEqual(simpleListing.slice(0, 1));
    expect(second.counts()).toEqual({ commit: 1, tree: 1, commits: 1 });
    host.faults.add({ fault: { kind: 'status', status: 500 } });
    expect(await failureOf(list(providerOf(host, { ...options, token: 'glpat-other' })))).toMatch(/^provider_failed: /u);
    await nobody.close();
  });
});

describe('A project', () => {
  test('is found without a token only if it is public', async () => {
    const host = await hostOf();
    await host.publish(simple);
    await host.publish(simple, 'acme/open');
    const project = host.projects.find('acme/open')?.repository;
    if (project !== undefined) project.visibility = 'public';
    const provider = createGitLabProvider({ url: host.url, clock: createSystemClock() });
    expect(await list(provider, 'acme/open')).toEqual(simpleListing);
    expect(await failureOf(list(provider))).toMatch(/^repository_not_found: /u);
    await provider.close();
  });

  test('is not found if nobody may read its code', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const project = host.projects.find('acme/shop')?.repository;
    if (project !== undefined) project.visibility = 'closed';
    expect(await failureOf(list(providerOf(host)))).toMatch(/^repository_not_found: /u);
  });
});

test('a token is not sent over plain HTTP to another machine, unless `httpHosts` names it', () => {
  const options = { url: 'http://git.internal:8080', clock: createSystemClock() };
  expect(() => createGitLabProvider({ ...options, token })).toThrow(/read on the way to git\.internal:8080/u);
  for (const more of [{ token, httpHosts: ['git.internal:8080'] }, {}]) expect(() => createGitLabProvider({ ...options, ...more })).not.toThrow();
});
