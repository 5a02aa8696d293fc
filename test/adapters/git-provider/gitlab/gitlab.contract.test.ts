import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createGitLabProvider } from '../../../../src/adapters/git-provider/gitlab/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import type { GitProvider } from '../../../../src/ports/git-provider.ts';
import type { ListingCache } from '../../../../src/ports/listing-cache.ts';
import { fileCases } from '../../../contracts/git-provider-files.ts';
import { addressCases, gitProviderContract } from '../../../contracts/git-provider.ts';
import { stageCases, type GitProviderHarness, type PullRequestControl } from '../../../contracts/git-provider-harness.ts';
import { startHostProxy } from '../../../contracts/host-proxy.ts';
import { startGitLab, type GitLabDouble, type GitLabDoubleOptions } from '../../../doubles/gitlab/index.ts';

function mergeRequestsOf({ projects, mergeRequests }: GitLabDouble): PullRequestControl {
  const idOf = (path: string): number => projects.find(path)?.repository.id ?? 0;
  return {
    // GitLab opens a merge request without changes.
    emptyPullRequests: 'opened',
    open: async (path) => mergeRequests.of(idOf(path)).filter(({ state, sourceProject }) => state === 'opened' && sourceProject === idOf(path))
      .map(({ iid, title, description, sourceBranch, targetBranch }) => ({
        number: iid, title: title.replace(/^Draft: /u, ''), body: description, branch: sourceBranch, base: targetBranch, isDraft: title.startsWith('Draft: '),
      })),
    async close(path, iid) {
      for (const each of mergeRequests.of(idOf(path))) if (each.iid === iid) each.state = 'closed';
    },
    openFromFork: async (path, sourceBranch, targetBranch) =>
      void mergeRequests.add(idOf(path), { title: 'Of a fork', description: '', sourceBranch, targetBranch, sourceProject: 9 }),
    forbid: async () => void (mergeRequests.allowed = false),
  };
}

async function createHarness(options: GitLabDoubleOptions): Promise<GitProviderHarness> {
  const root = await mkdtemp(join(tmpdir(), 'skep-gitlab-'));
  const host = await startGitLab(options);
  const proxy = await startHostProxy(host.url);
  const providers: GitProvider[] = [];
  const createProvider = (timeoutMs?: number, listingCache?: ListingCache): GitProvider => {
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    const cache = listingCache && { listingCache };
    const provider = createGitLabProvider({ url: proxy.url, token: 'glpat-double', clock: createSystemClock(), ...limit, ...cache });
    providers.push(provider);
    return provider;
  };
  const basic = `Basic ${Buffer.from('oauth2:glpat-double').toString('base64')}`;
  let published = 0;
  return {
    provider: createProvider(),
    secrets: ['glpat-double'],
    host: { createProvider, intercept: proxy.intercept },
    pullRequests: mergeRequestsOf(host),
    traits: { clockSkew: 'introduction', discardedHistory: 'ignored', invalidUtf8: 'omitted', remote: 'url', formerName: 'repository' },
    async publish(gitDir, name) {
      published += 1;
      const place = join(root, `${published}.git`);
      await cp(gitDir, place, { recursive: true });
      host.projects.put(name, place);
      return name;
    },
    archive: async (name) => void Object.assign(host.projects.find(name)?.repository ?? {}, { archived: true }),
    rename: async (from, to) => host.projects.rename(from, to),
    acceptsGit: async ({ authorization }) => authorization === basic,
    async close() {
      await Promise.all(providers.map((provider) => provider.close()));
      await proxy.close();
      await host.close();
      await rm(root, { recursive: true, force: true });
      expect(host.unexpected).toEqual([]);
    },
  };
}

describe('Git provider contract: GitLab', () => {
  for (const { name, run } of gitProviderContract(() => createHarness({}))) test(name, run);
});

const createOtherHarness = () => createHarness({ root: '/gitlab', treeTokens: 'id' });

// Only URLs and the page tokens of trees differ there.
describe('Git provider contract: GitLab below a path, with object ids as page tokens', () => {
  for (const { name, run } of stageCases(createOtherHarness, [...fileCases, ...addressCases.filter((each) => !fileCases.includes(each))])) test(name, run);
});
