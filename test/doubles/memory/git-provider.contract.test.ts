import { describe, test } from 'vitest';
import { createMemoryGitProvider, type MemoryRepository } from './index.ts';
import { gitProviderContract } from '../../contracts/git-provider.ts';
import type { GitProviderHarness } from '../../contracts/git-provider-harness.ts';
import { readPublished } from './published-repository.ts';

async function createHarness(): Promise<GitProviderHarness> {
  const provider = createMemoryGitProvider();
  const published = new Map<string, MemoryRepository>();
  return {
    provider,
    traits: { clockSkew: 'introduction', discardedHistory: 'counts', invalidUtf8: 'omitted', remote: 'url', formerName: 'nothing' },
    secrets: [],
    host: 'none',
    pullRequests: 'none',
    async publish(gitDir, name) {
      const repository = await readPublished(gitDir, name);
      published.set(name, repository);
      provider.put(repository);
      return name;
    },
    async rename(from, to) {
      provider.remove(from);
      provider.put({ ...published.get(from)!, path: to });
    },
    acceptsGit: async ({ authorization }) => authorization === null,
    close: () => provider.close(),
  };
}

describe('Git provider contract: in memory', () => {
  for (const contractCase of gitProviderContract(createHarness)) test(contractCase.name, () => contractCase.run());
});
