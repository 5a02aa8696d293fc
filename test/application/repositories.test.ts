import { describe, expect, test } from 'vitest';
import { Microagents } from '../../src/application/microagents/microagents.ts';
import { Repositories, type RepositoryPatterns } from '../../src/application/repositories/repositories.ts';
import { Failure } from '../../src/domain/failure.ts';
import type { PageKey } from '../../src/domain/page.ts';
import type { GitProvider } from '../../src/ports/git-provider.ts';
import { createMemoryGitProvider } from '../doubles/memory/index.ts';
import { microagentDeps } from './microagent-deps.ts';

const actual = (name: string): string => (name === 'acme/shop' ? 'secret/shop' : name);

/** A host that has the repository under another name than the requested one. */
function renamed() {
  const provider = createMemoryGitProvider({ hosts: ['git.example.org'], repositories: [{ path: 'secret/shop', defaultBranch: 'main', files: [] }] });
  const asked: string[] = [];
  const repositories = new Repositories([{
    ...provider,
    find: (name, signal) => provider.find(actual(name), signal),
    listFiles: (name, query, signal) => {
      asked.push(name);
      return provider.listFiles(actual(name), query, signal);
    },
  }]);
  return { repositories, microagents: new Microagents({ repositories, ...microagentDeps() }), asked };
}

test.each([
  ['acme/shop', ['acme/*']],
  ['git.example.org/acme/shop', ['acme/*', 'git.example.org/acme/**']],
  ['secret/shop', ['acme/*', 'other.example.org/secret/*']],
  ['secret/shop', []],
])('a renamed repository requested as %s is not found by a key with the patterns %j', async (name, patterns) => {
  const { repositories, microagents, asked } = renamed();
  await expect(repositories.find(name, patterns)).rejects.toMatchObject({ code: 'repository_not_found' });
  await expect(microagents.list(name, patterns)).rejects.toMatchObject({ code: 'repository_not_found' });
  expect(asked).toEqual([]);
});

test('a renamed repository is found if a pattern matches its current name, or without patterns', async () => {
  const { repositories, microagents } = renamed();
  for (const patterns of [['secret/*'], ['git.example.org/secret/shop'], null]) {
    expect((await repositories.find('acme/shop', patterns)).path).toBe('secret/shop');
    expect(await microagents.list('acme/shop', patterns)).toEqual([]);
  }
});

const repository = (path: string) => ({ path, defaultBranch: 'main', files: [] });
const first = { after: null, limit: 100 };

function withoutLists(provider: GitProvider): GitProvider {
  const plain = { ...provider };
  delete plain.searchRepositories;
  delete plain.listBranches;
  return plain;
}

/** Returns the names of all pages, with at most `limit` items each. */
async function searchAll(repositories: Repositories, text: string, patterns: RepositoryPatterns, limit: number): Promise<string[]> {
  const names: string[] = [];
  for (let after: PageKey | null | undefined; after !== null; ) {
    const page = await repositories.search(text, patterns, { after: after ?? null, limit });
    names.push(...page.items.map(({ name }) => name));
    after = page.next;
  }
  return names;
}

describe('a search for repositories', () => {
  const github = createMemoryGitProvider({ name: 'github', hosts: ['github.com'], repositories: ['acme/shop', 'acme/shopping', 'gitlab.com/shop'].map(repository) });
  const gitlab = createMemoryGitProvider({ name: 'gitlab', hosts: ['gitlab.com'], repositories: ['acme/shop', 'group/sub/shop'].map(repository) });
  const nameless = createMemoryGitProvider({ name: 'nameless', repositories: [repository('acme/shop')] });
  const plain = withoutLists(createMemoryGitProvider({ name: 'plain', hosts: ['plain.example'] }));
  const repositories = new Repositories([github, gitlab, plain, nameless]);

  test.each([[1, [0, 1, 2, 3, 4]], [2, [0, 3, 1, 4, 2]], [100, [0, 1, 2, 3, 4]]])('returns the repositories of all providers with names that find them, in pages of %i', async (limit, order) => {
    const names = ['acme/shop', 'acme/shopping', 'github.com/gitlab.com/shop', 'gitlab.com/acme/shop', 'gitlab.com/group/sub/shop'];
    expect(await searchAll(repositories, 'shop', null, limit)).toEqual(order.map((index) => names[index]));
    expect(await searchAll(repositories, 'group', null, limit)).toEqual(['gitlab.com/group/sub/shop']);
    const found = await Promise.all(names.map((name) => repositories.find(name, null)));
    expect(found.map(({ provider, path }) => `${provider.name} ${path}`)).toEqual([
      'github acme/shop', 'github acme/shopping', 'github gitlab.com/shop', 'gitlab acme/shop', 'gitlab group/sub/shop',
    ]);
  });

  test('returns only what the patterns match, and continues after pages without a match', async () => {
    expect(await searchAll(repositories, 'shop', ['gitlab.com/group/**'], 1)).toEqual(['gitlab.com/group/sub/shop']);
    expect(await searchAll(repositories, 'shop', ['*/shopping'], 1)).toEqual(['acme/shopping']);
    expect((await repositories.search('shop', ['gitlab.com/acme/*'], { after: null, limit: 2 })).items).toMatchObject([{ path: 'acme/shop', gitProvider: 'gitlab' }]);
    expect(await searchAll(repositories, 'shop', [], 100)).toEqual([]);
  });

  test('leaves out a provider that fails and names it, and fails if nothing is found', async () => {
    const failure = new Failure('provider_timeout', { provider: 'gitlab', limitMs: 1 });
    const failing = { ...gitlab, searchRepositories: async () => await Promise.reject(failure) };
    const [before, after] = [new Repositories([failing, github]), new Repositories([github, failing])];
    const items = [{ path: 'acme/shopping', gitProvider: 'github' }];
    for (const repositories of [before, after]) {
      expect(await repositories.search('shopping', null, first)).toMatchObject({ items, next: null, failures: [{ gitProvider: 'gitlab', failure }] });
    }
    const page = await after.search('shopping', null, { after: null, limit: 1 });
    expect(page).toMatchObject({ items, failures: [] });
    await expect(after.search('shopping', null, { after: page.next, limit: 100 })).rejects.toBe(failure);
    for (const repositories of [before, after]) await expect(repositories.search('group', null, first)).rejects.toBe(failure);
  });

  test('has repositories of all providers on the first page, although one has more than fit', async () => {
    const paths = Array.from({ length: 200 }, (_, index) => `acme/shop-${index}`);
    const large = createMemoryGitProvider({ name: 'github', hosts: ['github.com'], repositories: paths.map(repository) });
    const both = new Repositories([large, gitlab]);
    const page = await both.search('shop', null, { after: null, limit: 10 });
    expect(page.items.map(({ gitProvider }) => gitProvider)).toEqual([...Array<string>(5).fill('github'), 'gitlab', 'gitlab']);
    expect((await both.search('shop', null, { after: page.next, limit: 10 })).items).toHaveLength(10);
    expect(new Set(await searchAll(both, 'shop', null, 10)).size).toBe(202);
  });

  test('finds a match on a late page of a provider while an earlier one fails', async () => {
    const failure = new Failure('provider_failed', { provider: 'gitlab', reason: { code: 'unreachable' } });
    const failing = { ...gitlab, searchRepositories: async () => await Promise.reject(failure) };
    const paths = [...Array.from({ length: 20 }, (_, index) => `acme/shop-${index}`), 'zoo/shop'];
    const large = createMemoryGitProvider({ name: 'github', hosts: ['github.com'], repositories: paths.map(repository) });
    const partly = new Repositories([failing, large]);
    const page = await partly.search('shop', ['zoo/*'], { after: null, limit: 1 });
    expect(page).toEqual({ items: [], next: expect.any(Object), failures: [{ gitProvider: 'gitlab', failure }] });
    expect(await searchAll(partly, 'shop', ['zoo/*'], 1)).toEqual(['github.com/zoo/shop']);
    await expect(partly.search('shop', ['none/*'], first)).rejects.toBe(failure);
  });

  test('refuses the page of a provider that is gone or can no longer search', async () => {
    const { next } = await repositories.search('acme', null, { after: null, limit: 1 });
    const problems = [{ argument: 'after', reason: { code: 'unknown_page' } }];
    for (const github of [[], [withoutLists(createMemoryGitProvider({ name: 'github' }))]]) {
      const changed = new Repositories([...github, gitlab]);
      await expect(changed.search('acme', null, { after: next, limit: 1 })).rejects.toMatchObject({ code: 'invalid_request', context: { problems } });
    }
  });

  test('refuses a page that is no page of a search', async () => {
    for (const id of ['githubX', 'github', '']) {
      await expect(repositories.search('acme', null, { after: { value: 0, id }, limit: 1 })).rejects.toMatchObject({ code: 'invalid_request' });
    }
  });

  test('fails if no provider can search', async () => {
    await expect(new Repositories([plain]).search('shop', null, first)).rejects.toMatchObject({ code: 'listing_unsupported', context: { provider: 'plain', listing: 'repositories' } });
  });
});

test('a branch listing marks the default branch, and fails if the key may not use the repository', async () => {
  const branches = ['main', 'next'].map((name) => ({ name, commit: '1'.repeat(40) }));
  const provider = createMemoryGitProvider({ hosts: ['git.example.org'], repositories: [{ ...repository('acme/shop'), branches }] });
  const plain = withoutLists(provider);
  const repositories = new Repositories([provider]);
  const page = await repositories.branches('git.example.org/acme/shop', ['acme/*'], { after: null, limit: 1 });
  expect(page.items).toEqual([{ ...branches[0], isDefault: true }]);
  expect(await repositories.branches('acme/shop', null, { after: page.next, limit: 1 })).toEqual({ items: [{ ...branches[1], isDefault: false }], next: null });
  await expect(repositories.branches('acme/shop', ['other/*'], first)).rejects.toMatchObject({ code: 'repository_not_found' });
  await expect(new Repositories([plain]).branches('acme/shop', null, first)).rejects.toMatchObject({ code: 'listing_unsupported', context: { listing: 'branches' } });
});
