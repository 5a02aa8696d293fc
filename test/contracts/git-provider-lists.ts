import assert from 'node:assert/strict';
import { isFailureOf } from '../../src/domain/failure.ts';
import type { Branch, HostPage, HostPageRequest, SearchHit } from '../../src/ports/git-provider.ts';
import { assertFails } from './contract.ts';
import type { StageCase } from './git-provider-harness.ts';
import type { RepositoryDescription } from './git-repository.ts';

const start = 1_600_000_000;
const one: RepositoryDescription = { commits: [{ id: 'first', at: start, files: [['a', '1']] }] };

/** Undefined if the provider does not have the method. */
type ReadPage<T> = (page: HostPageRequest) => Promise<HostPage<T>> | undefined;

/** Returns all items of all pages. */
export async function readAll<T>(read: ReadPage<T>, limit = 100): Promise<T[]> {
  const items: T[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const page: HostPage<T> | undefined = await read({ after: after ?? null, limit });
    assert.ok(page !== undefined, 'the method returns no page');
    assert.ok(page.items.length <= limit, 'a page has more items than asked for');
    assert.notEqual(page.next, '');
    items.push(...page.items);
    after = page.next;
  }
  return items;
}

/** Cases that do not apply to a provider without the method. */
export const listCases: readonly StageCase[] = [
  [
    'finds repositories by a literal part of their names, in upper and lower case',
    async ({ publish, provider }) => {
      const search = provider.searchRepositories?.bind(provider);
      if (search === undefined) return;
      const pathsOf = async (text: string): Promise<string[]> => (await readAll((page) => search(text, page))).map(({ path }) => path);
      const [shop, tool] = [await publish(one), await publish(one, 'acme/tool')];
      assert.deepEqual(await pathsOf('shop'), [shop]);
      assert.deepEqual(await pathsOf('SHOP'), [shop]);
      assert.deepEqual(await pathsOf(tool), [tool]);
      for (const text of ['none', 'sh*p', 'sh?p', 's[h]op', '"', '"shop" OR "tool"', 'user:acme', 'shop&x=y', '%', '_hop', 'none/shop', '--help']) {
        assert.deepEqual(await pathsOf(text), [], text);
      }
    },
  ],
  [
    'finds each repository once with any page size',
    async ({ publish, provider }) => {
      const search = provider.searchRepositories?.bind(provider);
      if (search === undefined) return;
      const names = await Promise.all(['acme/one-shop', 'acme/two-shop', 'acme/three-shop'].map((name) => publish(one, name)));
      for (const limit of [1, 2, 3]) {
        const found: readonly SearchHit[] = await readAll((page) => search('shop', page), limit);
        assert.deepEqual(found.map(({ path }) => path).toSorted(), names.toSorted());
      }
    },
  ],
  [
    'lists the branches with their commits in one order with any page size, and none for an empty repository',
    async ({ publish, provider }) => {
      const list = provider.listBranches?.bind(provider);
      if (list === undefined) return;
      const names = ['feature/deep/er', 'main', 'old', 'über', 'z'];
      const commits = [{ id: 'first', at: start, files: [['a', '1'] as const] }, { id: 'second', at: start + 10, files: [['a', '2'] as const] }];
      const branches = Object.fromEntries(names.map((name) => [name, name === 'old' ? 'first' : 'second']));
      const repository = await publish({ commits, branches });
      const inOnePage = (await readAll((page) => list(repository, page))).map(({ name }) => name);
      for (const limit of [1, 2, 5, 100]) {
        const found: readonly Branch[] = await readAll((page) => list(repository, page), limit);
        assert.deepEqual(found.map(({ name }) => name), inOnePage, `the order with pages of ${limit} branches`);
        assert.deepEqual(found.map(({ name }) => name).toSorted(), names.toSorted());
        assert.deepEqual(new Set(found.map(({ commit }) => commit)).size, 2);
        for (const { commit } of found) assert.match(commit, /^[0-9a-f]{40}$/u);
      }
      assert.deepEqual(await readAll((page) => list('acme/empty', page)).catch(codeOf), 'repository_not_found');
      const empty = await publish({ commits: [] }, 'acme/empty');
      assert.deepEqual(await readAll((page) => list(empty, page)), []);
    },
  ],
  [
    'fails if the host fails, instead of returning an empty list',
    async ({ publish, provider, host }) => {
      if (host === 'none') return;
      const repository = await publish(one);
      const first = { after: null, limit: 10 };
      host.intercept(() => 500);
      for (const listing of [provider.searchRepositories?.('shop', first), provider.listBranches?.(repository, first)]) {
        if (listing !== undefined) await assertFails(listing, isHostFailure, 'it fails with provider_failed');
      }
    },
  ],
  [
    'rejects a search and a branch list with the reason of a signal that has fired',
    async ({ publish, provider }) => {
      const repository = await publish(one);
      const [reason, first] = [new Error('the caller has left'), { after: null, limit: 10 }];
      const signal = AbortSignal.abort(reason);
      for (const listing of [provider.searchRepositories?.('shop', first, signal), provider.listBranches?.(repository, first, signal)]) {
        if (listing !== undefined) await assertFails(listing, (error) => error === reason, 'it rejects with the reason of the signal');
      }
    },
  ],
];

function isHostFailure(error: unknown): boolean {
  return isFailureOf(error, 'provider_failed');
}

function codeOf(error: unknown): string {
  for (const code of ['provider_failed', 'repository_not_found'] as const) if (isFailureOf(error, code)) return code;
  throw error;
}
