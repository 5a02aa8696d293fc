import { expect, onTestFinished, test } from 'vitest';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import { createGitLabProvider } from '../../../../src/adapters/git-provider/gitlab/index.ts';
import { readAll } from '../../../contracts/git-provider-lists.ts';
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
  const found = await readAll((page) => provider.searchRepositories?.('b-', page), 70);
  const branches = await readAll((page) => provider.listBranches?.('acme/shop', page), 70);
  expect(found.map(({ path }) => path)).toEqual(names.map((name) => `acme/${name}`));
  expect(branches.map(({ name }) => name)).toEqual([...names, 'main']);
  expect(host.counts()).toMatchObject({ search: 3, branches: 3 });
});
