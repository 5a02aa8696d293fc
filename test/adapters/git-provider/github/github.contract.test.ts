import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { createGitHubProvider } from '../../../../src/adapters/git-provider/github/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import type { GitProvider } from '../../../../src/ports/git-provider.ts';
import { addressCases, gitProviderContract } from '../../../contracts/git-provider.ts';
import { stageCases, type GitProviderHarness, type PullRequestControl } from '../../../contracts/git-provider-harness.ts';
import { startHostProxy } from '../../../contracts/host-proxy.ts';
import { doubleToken, startGitHubDouble, type DoubleOptions, type GitHubDouble } from '../../../doubles/github/index.ts';

function pullRequestsOf({ repositories, pullRequests }: GitHubDouble): PullRequestControl {
  const idOf = (repository: string): number => repositories.find(repository)?.repository.id ?? 0;
  return {
    open: async (repository) => pullRequests.of(idOf(repository)).filter(({ state, fork }) => state === 'open' && fork === null)
      .map(({ number, title, body, head, base, draft }) => ({ number, title, body: body ?? '', branch: head, base, isDraft: draft })),
    async close(repository, number) {
      for (const each of pullRequests.of(idOf(repository))) if (each.number === number) each.state = 'closed';
    },
    openFromFork: async (repository, head, base) =>
      void pullRequests.add(idOf(repository), { title: 'Of a fork', body: null, head, base, draft: false, fork: 'acme/fork' }),
    forbid: async () => void (pullRequests.allowed = false),
  };
}

interface Way extends DoubleOptions {
  readonly token: string | null;
}

async function createHarness({ token, ...options }: Way): Promise<GitProviderHarness> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-github-'));
  const double = await startGitHubDouble(options);
  const credential = token === null ? {} : { token };
  const proxy = await startHostProxy(double.url);
  const providers: GitProvider[] = [];
  const createProvider = (timeoutMs?: number): GitProvider => {
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    const provider = createGitHubProvider({ url: proxy.url, clock: createSystemClock(), ...credential, ...limit });
    providers.push(provider);
    return provider;
  };
  const basic = token === null ? null : `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;
  let published = 0;
  return {
    provider: createProvider(),
    host: { createProvider, intercept: proxy.intercept },
    pullRequests: token === null ? 'none' : pullRequestsOf(double),
    traits: { clockSkew: 'introduction', discardedHistory: 'ignored', invalidUtf8: 'omitted', remote: 'url', formerName: 'repository' },
    async publish(gitDir, name) {
      published += 1;
      const place = join(folder, `${published}.git`);
      await cp(gitDir, place, { recursive: true });
      double.repositories.put(name, place);
      return name;
    },
    archive: async (name) => void Object.assign(double.repositories.find(name)?.repository ?? {}, { archived: true }),
    rename: async (from, to) => double.repositories.rename(from, to),
    acceptsGit: async ({ authorization }) => authorization === basic,
    async close() {
      await Promise.all(providers.map((provider) => provider.close()));
      await proxy.close();
      await double.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const ways: readonly (readonly [string, Way])[] = [
  ['with a token', { token: doubleToken }],
  ['without a credential', { token: null }],
];

describe.each(ways)('Git provider contract: GitHub %s', (_, way) => {
  for (const contractCase of gitProviderContract(() => createHarness(way))) test(contractCase.name, () => contractCase.run());
});

const createEnterpriseHarness = () => createHarness({ token: doubleToken, prefix: '/api/v3' });

// Only the URLs differ there.
describe('Git provider contract: GitHub Enterprise Server', () => {
  for (const { name, run } of stageCases(createEnterpriseHarness, addressCases)) test(name, run);
});
