import { afterAll, beforeAll, expect, test } from 'vitest';
import { Failure } from '../../../src/domain/failure.ts';
import { createMemoryGitProvider } from '../../doubles/memory/index.ts';
import { items, object } from '../../support/client.ts';
import { createWorld, type World } from './world.ts';

const repositories = '/api/v1/repositories';
let world: World;
beforeAll(async () => {
  world = await createWorld();
  const branches = ['feature/tea', 'main', 'next'].map((name) => ({ name, commit: '1'.repeat(40) }));
  world.provider.put({ path: 'acme/tea-shop', defaultBranch: 'main', files: [], branches });
});
afterAll(() => world.close());

test('a search returns repositories page by page, and only those that the key may use', async () => {
  const search = `${repositories}/search?query=SHOP`;
  expect(items(await world.ann('GET', search)).map(({ name }) => name)).toEqual(['acme/shop', 'acme/tea-shop']);
  const page = await world.ann('GET', `${search}&limit=1`);
  expect(page.body).toMatchObject({ items: [{ name: 'acme/shop', path: 'acme/shop', git_provider: 'memory' }], next_page_id: expect.any(String) });
  const token = encodeURIComponent(String(object(page)['next_page_id']));
  expect((await world.ann('GET', `${search}&limit=1&page_id=${token}`)).body).toMatchObject({ items: [{ name: 'acme/tea-shop' }], next_page_id: null });
  expect((await world.ann('GET', `${repositories}/search?query=other&page_id=${token}`)).status).toBe(422);
  expect((await world.ann('GET', `${search}&page_id=made-up`)).status).toBe(422);
  expect((await world.client(world.keys.limited)('GET', search)).body).toEqual({ items: [], next_page_id: null, failures: [] });
  for (const wrong of ['', '?query=', '?query=a&limit=0', '?query=a&limit=101']) expect((await world.ann('GET', `${repositories}/search${wrong}`)).status).toBe(422);
});

test('a search names the git providers that failed beside what was found, and is their failure if nothing was found', async () => {
  const failure = new Failure('provider_failed', { provider: 'down', reason: { code: 'unreachable' } });
  const down = { ...createMemoryGitProvider({ name: 'down' }), searchRepositories: async () => await Promise.reject(failure) };
  const other = await createWorld({ firstProvider: down });
  const { body } = await other.ann('GET', `${repositories}/search?query=shop`);
  const detail = "The git provider down failed. It can't be reached.";
  expect(body).toMatchObject({ items: [{ path: 'acme/shop' }], next_page_id: null, failures: [{ git_provider: 'down', code: 'provider_failed', detail }] });
  expect((await other.ann('GET', `${repositories}/search?query=none`)).body).toMatchObject({ status: 502, code: 'provider_failed', detail });
  await other.close();
});

test('a page of a git provider that can no longer be searched is a 422', async () => {
  const gone = { ...createMemoryGitProvider({ name: 'gone', repositories: ['a/shop', 'b/shop'].map((path) => ({ path, defaultBranch: 'main', files: [] })) }) };
  const other = await createWorld({ firstProvider: gone });
  const search = `${repositories}/search?query=shop&limit=1`;
  const token = encodeURIComponent(String(object(await other.ann('GET', search))['next_page_id']));
  delete gone.searchRepositories;
  const { status, body } = await other.ann('GET', `${search}&page_id=${token}`);
  expect([status, body]).toMatchObject([422, { detail: [{ loc: ['query', 'page_id'], type: 'unknown_page' }] }]);
  await other.close();
});

test('branches are listed page by page, with plain or encoded slashes in the repository name', async () => {
  for (const name of ['acme/tea-shop', 'acme%2Ftea-shop', 'git.example.org/acme/tea-shop']) {
    expect(items(await world.ann('GET', `${repositories}/${name}/branches`))).toMatchObject([
      { name: 'feature/tea', is_default: false }, { name: 'main', is_default: true }, { name: 'next', is_default: false },
    ]);
  }
  const page = await world.ann('GET', `${repositories}/acme/tea-shop/branches?limit=2`);
  const token = encodeURIComponent(String(object(page)['next_page_id']));
  expect(items(await world.ann('GET', `${repositories}/acme/tea-shop/branches?limit=2&page_id=${token}`))).toMatchObject([{ name: 'next' }]);
  expect((await world.ann('GET', `${repositories}/acme/shop/branches?page_id=${token}`)).status).toBe(422);
  expect((await world.ann('GET', `${repositories}/..%2Fx/branches`)).status).toBe(422);
  for (const client of [world.client(world.keys.limited), world.ann]) {
    const name = client === world.ann ? 'acme/none' : 'acme/shop';
    expect((await client('GET', `${repositories}/${name}/branches`)).body).toMatchObject({ status: 404, code: 'repository_not_found' });
  }
});

test('branches of a git provider that cannot list them are a 409', async () => {
  world.faults.git = new Failure('listing_unsupported', { provider: 'memory', listing: 'branches' });
  const { body } = await world.ann('GET', `${repositories}/acme/shop/branches`);
  expect(body).toMatchObject({ status: 409, code: 'listing_unsupported', provider: 'memory', listing: 'branches' });
  delete world.faults.git;
});
