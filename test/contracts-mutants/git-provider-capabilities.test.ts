import { AssertionError } from 'node:assert';
import { expect, test } from 'vitest';
import { createGiteaHarness } from '../../examples/gitea-provider/gitea-harness.ts';
import { createGiteaProvider } from '../../examples/gitea-provider/gitea-provider.ts';
import type { GitProvider } from '../../src/ports/git-provider.ts';
import { gitProviderContract } from '../contracts/git-provider.ts';

/** Methods of a provider whose harness declares that it has none, or that return nothing, as an unfinished adapter may. */
const mistakes: readonly (readonly [contractCase: string, methods: object])[] = [
  ['opens a pull request into the default branch', { openPullRequest: async () => ({ number: 1, url: 'https://git.example/1' }) }],
  ['finds repositories by a literal part', { searchRepositories: async () => {} }],
  ['finds each repository once', { searchRepositories: async () => {} }],
  ['lists the branches', { listBranches: async () => {} }],
  ['fails if the host fails', { listBranches: async () => {} }],
  ['rejects a search and a branch list', { searchRepositories: async () => {}, listBranches: undefined }],
  ['says that a repository is archived', { find: async (path: string) => ({ path, defaultBranch: 'main', isArchived: true }) }],
];

test.each(mistakes)('the contract of git providers proves that a capability is absent: %s', async (contractCase, methods) => {
  const create = (options: Parameters<typeof createGiteaProvider>[0]): GitProvider => ({ ...createGiteaProvider(options), ...methods });
  const cases = gitProviderContract(() => createGiteaHarness(create)).filter(({ name }) => name.startsWith(contractCase));
  expect(cases).toHaveLength(1);
  const failure: unknown = await cases[0]?.run().then(() => null, (error: unknown) => error);
  expect(failure).toBeInstanceOf(AssertionError);
});
