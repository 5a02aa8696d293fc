import { describe, test } from 'vitest';
import { createMemoryGitProvider } from './index.ts';
import { gitProviderContract } from '../../contracts/git-provider.ts';
import type { GitProviderHarness } from '../../contracts/git-provider-harness.ts';
import { readPublished } from './published-repository.ts';

async function createHarness(): Promise<GitProviderHarness> {
  const provider = createMemoryGitProvider();
  return {
    provider,
    traits: { clockSkew: 'introduction', discardedHistory: 'counts', invalidUtf8: 'omitted', remote: 'url' },
    async publish(gitDir, name) {
      provider.put(await readPublished(gitDir, name));
      return name;
    },
    close: () => provider.close(),
  };
}

describe('memory keeps the contract of git providers', () => {
  for (const contractCase of gitProviderContract(createHarness)) test(contractCase.name, () => contractCase.run());
});
