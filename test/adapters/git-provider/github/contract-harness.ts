import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGitHubProvider, type GitHubOptions } from '../../../../src/adapters/git-provider/github/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import type { GitProvider } from '../../../../src/ports/git-provider.ts';
import type { ListingCache } from '../../../../src/ports/listing-cache.ts';
import type { GitProviderHarness, PullRequestControl } from '../../../contracts/git-provider-harness.ts';
import { startHostProxy } from '../../../contracts/host-proxy.ts';
import { startGitHubDouble, type DoubleOptions, type GitHubDouble } from '../../../doubles/github/index.ts';

function pullRequestsOf({ repositories, pullRequests }: GitHubDouble): PullRequestControl {
  const idOf = (repository: string): number => repositories.find(repository)?.repository.id ?? 0;
  return {
    emptyPullRequests: 'refused',
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

/** How the provider is created, and what its double serves. */
export interface Way extends DoubleOptions {
  readonly token: string | null;
  /** Can replace the provider, to test the suite. */
  readonly create?: (options: GitHubOptions) => GitProvider;
}

export async function createGitHubHarness({ token, create = createGitHubProvider, ...options }: Way): Promise<GitProviderHarness> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-github-'));
  const double = await startGitHubDouble(options);
  const credential = token === null ? {} : { token };
  const proxy = await startHostProxy(double.url);
  const providers: GitProvider[] = [];
  const createProvider = (timeoutMs?: number, listingCache?: ListingCache): GitProvider => {
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    const provider = create({ url: proxy.url, clock: createSystemClock(), ...credential, ...limit, ...(listingCache && { listingCache }) });
    providers.push(provider);
    return provider;
  };
  const basic = token === null ? null : `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;
  let published = 0;
  return {
    provider: createProvider(),
    secrets: token === null ? [] : [token],
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
