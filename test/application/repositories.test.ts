import { describe, expect, test } from 'vitest';
import { Microagents } from '../../src/application/microagents/microagents.ts';
import { Repositories, type RepositoryPatterns } from '../../src/application/repositories/repositories.ts';
import { Failure } from '../../src/domain/failure.ts';
import type { PageKey } from '../../src/domain/page.ts';
import type { GitProvider } from '../../src/ports/git-provider.ts';
import { createMemoryGitProvider } from '../doubles/memory/index.ts';
import { microagentDeps } from './microagent-deps.ts';

const actual = (name: string): string => (name === 'acme/shop' ? 'secret/shop' : name);

/** A host that has the repository under another name than the one that it is asked for. */
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
])('the repository %s does not exist for a key with the patterns %j, whatever name it is asked for by', async (name, patterns) => {
  const { repositories, microagents, asked } = renamed();
  await expect(repositories.find(name, patterns)).rejects.toMatchObject({ code: 'repository_not_found' });
  await expect(microagents.list(name, patterns)).rejects.toMatchObject({ code: 'repository_not_found' });
  expect(asked).toEqual([]);
});

test('a repository that a pattern matches by its present name is served, and without patterns every one', async () => {
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

/** Names of all pages, of which each has so many items at most. */
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

  test.each([1, 2, 100])('goes over all providers, and gives each a name that leads to it, in pages of %i', async (limit) => {
    const names = ['acme/shop', 'acme/shopping', 'github.com/gitlab.com/shop', 'gitlab.com/acme/shop', 'gitlab.com/group/sub/shop'];
    expect(await searchAll(repositories, 'shop', null, limit)).toEqual(names);
    expect(await searchAll(repositories, 'group', null, limit)).toEqual(['gitlab.com/group/sub/shop']);
    for (const name of names) await expect(repositories.find(name, null)).resolves.toBeDefined();
  });

  test('shows what the patterns of the key match, and goes on where a page has nothing of that', async () => {
    expect(await searchAll(repositories, 'shop', ['gitlab.com/group/**'], 1)).toEqual(['gitlab.com/group/sub/shop']);
    expect(await searchAll(repositories, 'shop', ['*/shopping'], 1)).toEqual(['acme/shopping']);
    expect((await repositories.search('shop', ['gitlab.com/acme/*'], { after: null, limit: 2 })).items).toMatchObject([{ path: 'acme/shop', gitProvider: 'gitlab' }]);
    expect(await searchAll(repositories, 'shop', [], 100)).toEqual([]);
  });

  test('fails if a provider does, and if none can search', async () => {
    const failure = new Failure('provider_timeout', { provider: 'gitlab', limitMs: 1 });
    const failing = new Repositories([github, { ...gitlab, searchRepositories: async () => await Promise.reject(failure) }]);
    await expect(failing.search('group', null, first)).rejects.toBe(failure);
    await expect(new Repositories([plain]).search('shop', null, first)).rejects.toMatchObject({ code: 'listing_unsupported', context: { provider: 'plain', listing: 'repositories' } });
  });
});

test('branches are listed of what the key may use, with the default one marked', async () => {
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
