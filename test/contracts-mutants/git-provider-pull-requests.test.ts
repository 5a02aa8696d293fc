import { AssertionError } from 'node:assert';
import { expect, test } from 'vitest';
import { createGitHubProvider, type GitHubOptions } from '../../src/adapters/git-provider/github/index.ts';
import { Failure, isFailure, isFailureOf } from '../../src/domain/failure.ts';
import type { GitProvider } from '../../src/ports/git-provider.ts';
import { createGitHubHarness } from '../adapters/git-provider/github/contract-harness.ts';
import type { GitProviderHarness, PullRequestControl } from '../contracts/git-provider-harness.ts';
import { doubleToken } from '../doubles/github/index.ts';
import { failureOfCase } from './failure-of-case.ts';

type Open = NonNullable<GitProvider['openPullRequest']>;
type Create = (options: GitHubOptions) => GitProvider;

/** Returns a GitHub provider whose `openPullRequest` goes through `mistaken`. */
function withOpen(mistaken: (open: Open, provider: GitProvider) => Open): Create {
  return (options) => {
    const provider = createGitHubProvider(options);
    return { ...provider, openPullRequest: mistaken((...asked) => provider.openPullRequest!(...asked), provider) };
  };
}

/** Reports errors after the request for the repository as a refusal, if they have this code. */
const withRefusalFor = (code: 'provider_unauthorized' | 'provider_rate_limited' | 'provider_failed'): Create =>
  withOpen((open, provider) => async (repository, request, signal) => {
    await provider.find(repository, signal);
    return await open(repository, request, signal).catch((error: unknown) => {
      if (!isFailureOf(error, code)) throw error;
      const reason = { code: 'pull_request_forbidden' } as const;
      throw new Failure('pull_request_refused', { provider: 'github', repository, branch: request.branch, reason });
    });
  });

/** Takes methods from a provider that waits for a day. */
const withoutTimeLimit = (methodsOf: (slow: GitProvider, provider: GitProvider) => Partial<GitProvider>): Create => (options) => {
  const [provider, slow] = [createGitHubProvider(options), createGitHubProvider({ ...options, timeoutMs: 86_400_000 })];
  const close = async (): Promise<void> => void (await Promise.all([provider.close(), slow.close()]));
  return { ...provider, ...methodsOf(slow, provider), close };
};

const withPagesInReverse: Create = (options) => {
  const provider = createGitHubProvider(options);
  return {
    ...provider,
    async listBranches(...asked) {
      const { items, next } = await provider.listBranches!(...asked);
      return { items: items.toReversed(), next };
    },
  };
};

const afterAnswers = 'openPullRequest fails as other calls do';

const mistakes: readonly (readonly [mistake: string, contractCase: string, create: Create])[] = [
  ['a refused credential that is reported as a refusal', afterAnswers, withRefusalFor('provider_unauthorized')],
  ['a rate limit that is reported as a refusal', afterAnswers, withRefusalFor('provider_rate_limited')],
  ['a 5xx status that is reported as a refusal', afterAnswers, withRefusalFor('provider_failed')],
  [
    'a missing time limit in openPullRequest',
    afterAnswers,
    withoutTimeLimit((slow, provider) => ({
      async openPullRequest(...asked) {
        await provider.find(asked[0]);
        return await slow.openPullRequest!(...asked);
      },
    })),
  ],
  [
    'a missing time limit in searchRepositories',
    'fails with provider_timeout if the host does not answer',
    withoutTimeLimit((slow) => ({ searchRepositories: (...asked) => slow.searchRepositories!(...asked) })),
  ],
  [
    'a missing time limit in listBranches',
    'fails with provider_timeout if the host does not answer',
    withoutTimeLimit((slow) => ({ listBranches: (...asked) => slow.listBranches!(...asked) })),
  ],
  [
    'a branch without new commits that is reported as another failure',
    'treats a branch whose commits are all in the base as declared',
    withOpen((open) => async (...asked) => await open(...asked).catch((error: unknown) => {
      throw isFailure(error) ? new Failure('repository_not_found', { repository: asked[0] }) : error;
    })),
  ],
  ['branches whose order depends on the page size', 'lists the branches with their commits', withPagesInReverse],
];

// Most of them wait for a time limit.
test.concurrent.each(mistakes)('the contract of git providers catches %s', async (_, contractCase, create) => {
  expect(await failureOfCase(contractCase, () => createGitHubHarness({ token: doubleToken, create }))).toBeInstanceOf(AssertionError);
});

test('the contract of git providers catches a provider that reads only the first page of pull requests', async () => {
  const failure = await failureOfCase('finds the open pull request of a branch among 100 others', createFirstPageHarness);
  expect(failure).toMatchObject({ code: 'provider_failed' });
});

/** As on a host that lists the newest pull requests of all branches first, in pages of 100. */
async function createFirstPageHarness(): Promise<GitProviderHarness> {
  const state: { control: PullRequestControl | 'none' } = { control: 'none' };
  const create = withOpen((open) => async (repository, request, signal) => {
    const all = state.control === 'none' ? [] : await state.control.open(repository);
    const isFound = all.slice(-100).some(({ branch }) => branch === request.branch);
    if (isFound || all.every(({ branch }) => branch !== request.branch)) return await open(repository, request, signal);
    throw new Failure('provider_failed', { provider: 'github', reason: { code: 'unexpected_status', status: 409 } });
  });
  const harness = await createGitHubHarness({ token: doubleToken, create });
  state.control = harness.pullRequests;
  return harness;
}
