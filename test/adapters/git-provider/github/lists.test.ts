import { expect, test } from 'vitest';
import { readAll } from '../../../contracts/git-provider-lists.ts';
import type { RepositoryDescription } from '../../../contracts/git-repository.ts';
import { rubbish } from '../../../doubles/github/faults.ts';
import { failureOf, start } from '../support.ts';
import { createScene } from './support.ts';

const one: RepositoryDescription = { commits: [{ id: 'first', at: start, files: [['a', '1']] }] };
const first = { after: null, limit: 100 };

test('a search takes one request, and `owner/text` searches one owner', async () => {
  const scene = await createScene();
  for (const name of ['acme/shop', 'emca/shop', 'acme/tool']) await scene.publish(one, name);
  await scene.publish(one, 'acme/hidden-shop', 'private');
  const search = async (text: string, provider = scene.provider()) =>
    (await provider.searchRepositories?.(text, first))?.items.map(({ path }) => path).toSorted();
  expect(await search('shop')).toEqual(['acme/hidden-shop', 'acme/shop', 'emca/shop']);
  expect(scene.asked()).toEqual(['GET /search/repositories']);
  expect(await search('shop', scene.anonymous())).toEqual(['acme/shop', 'emca/shop']);
  expect(await search('emca/sh')).toEqual(['emca/shop']);
  expect(await search('emca/')).toEqual(['emca/shop']);
  expect(await search('nobody/shop')).toEqual([]);
  expect(await search('a b/shop')).toEqual([]);
});

test('a search fails if GitHub ends it early without a result', async () => {
  const scene = await createScene();
  scene.double.faults.plan({ act: rubbish({ total_count: 0, incomplete_results: true, items: [] }) });
  expect(await failureOf(scene.provider().searchRepositories?.('shop', first) ?? Promise.resolve())).toMatch(/^provider_failed: .*took too long/u);
});

test('a search goes on after the 100 items of a page of GitHub, up to the 1000 that GitHub returns', async () => {
  const scene = await createScene();
  await scene.publish(one);
  const { gitDir = '' } = scene.double.repositories.find('acme/shop')?.repository ?? {};
  for (let index = 0; index < 1050; index += 1) scene.double.repositories.put(`acme/many-${index}`, gitDir);
  const provider = scene.provider();
  const found = await readAll((page) => provider.searchRepositories?.('many', page));
  expect(found.map(({ path }) => path)).toEqual(Array.from({ length: 1000 }, (_, index) => `acme/many-${index}`));
  expect(scene.asked()).toHaveLength(10);
});

test('branches are requested 100 at a time, whatever the size of the pages', async () => {
  const scene = await createScene();
  const names = Array.from({ length: 120 }, (_, index) => `b-${String(index).padStart(3, '0')}`);
  await scene.publish({ ...one, branches: Object.fromEntries(['main', ...names].map((name) => [name, 'first'])) });
  const provider = scene.provider();
  const seen = await readAll((page) => provider.listBranches?.('acme/shop', page), 70);
  expect(seen.map(({ name }) => name)).toEqual([...names, 'main']);
  expect(scene.asked()).toEqual(Array.from({ length: 3 }, () => 'GET /repos/acme/shop/branches'));
});
