import { expect, onTestFinished, test } from 'vitest';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import { createGitLabProvider } from '../../../../src/adapters/git-provider/gitlab/index.ts';
import { failureOf, simple } from '../support.ts';
import { hostOf, providerOf } from './support.ts';

const first = { after: null, limit: 100 };

test('a search takes one request, by name or, with a slash, by path', async () => {
  const host = await hostOf();
  for (const name of ['acme/shop', 'group/sub/shop', 'shops/tool']) await host.publish(simple, name);
  const provider = providerOf(host);
  const search = async (text: string) => (await provider.searchRepositories?.(text, first))?.items.map(({ path }) => path);
  expect(await search('shop')).toEqual(['acme/shop', 'group/sub/shop']);
  expect(host.counts()).toEqual({ search: 1 });
  expect(await search('sub/shop')).toEqual(['group/sub/shop']);
});

test('a search without a token finds only public projects', async () => {
  const host = await hostOf();
  await host.publish(simple);
  await host.publish(simple, 'acme/shop-two');
  const { gitDir = '' } = host.projects.find('acme/shop-two')?.repository ?? {};
  host.projects.put('acme/shop-two', gitDir, 'public');
  const provider = createGitLabProvider({ url: host.url, clock: createSystemClock() });
  onTestFinished(() => provider.close());
  expect((await provider.searchRepositories?.('shop', first))?.items).toEqual([{ path: 'acme/shop-two' }]);
});

test('a search fails with `provider_unauthorized` if the token does not allow it', async () => {
  const host = await hostOf();
  host.faults.add({ fault: { kind: 'status', status: 403, body: { message: '403 Forbidden' } }, route: 'search' });
  const found = providerOf(host).searchRepositories?.('shop', first);
  expect(await failureOf(found ?? Promise.resolve())).toBe('provider_unauthorized: {"provider":"gitlab"}');
});

test('a search and a branch list go on after the 100 items of a page of GitLab', async () => {
  const host = await hostOf();
  const names = Array.from({ length: 120 }, (_, index) => `b-${String(index).padStart(3, '0')}`);
  await host.publish({ commits: simple, branches: Object.fromEntries(names.map((name) => [name, 'first'])) });
  const { gitDir = '' } = host.projects.find('acme/shop')?.repository ?? {};
  for (const name of names) host.projects.put(`acme/${name}`, gitDir);
  const provider = providerOf(host);
  const [found, branches]: [string[], string[]] = [[], []];
  for (let after: string | null | undefined; after !== null; ) {
    const page = await provider.searchRepositories?.('b-', { after: after ?? null, limit: 70 });
    found.push(...(page?.items ?? []).map(({ path }) => path));
    after = page?.next ?? null;
  }
  for (let after: string | null | undefined; after !== null; ) {
    const page = await provider.listBranches?.('acme/shop', { after: after ?? null, limit: 70 });
    branches.push(...(page?.items ?? []).map(({ name }) => name));
    after = page?.next ?? null;
  }
  expect(found).toEqual(names.map((name) => `acme/${name}`));
  expect(branches).toEqual([...names, 'main']);
  expect(host.counts()).toMatchObject({ search: 3, branches: 3 });
});
