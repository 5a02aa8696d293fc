import { expect, test } from 'vitest';
import { Microagents } from '../../src/application/microagents/microagents.ts';
import { Repositories } from '../../src/application/repositories/repositories.ts';
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
