import { describe, test } from 'vitest';
import { addressCases, gitProviderContract } from '../../../contracts/git-provider.ts';
import { stageCases } from '../../../contracts/git-provider-harness.ts';
import { doubleToken } from '../../../doubles/github/index.ts';
import { createGitHubHarness, type Way } from './contract-harness.ts';

const ways: readonly (readonly [string, Way])[] = [
  ['with a token', { token: doubleToken }],
  ['without a credential', { token: null }],
];

describe.each(ways)('Git provider contract: GitHub %s', (_, way) => {
  for (const contractCase of gitProviderContract(() => createGitHubHarness(way))) test(contractCase.name, () => contractCase.run());
});

const createEnterpriseHarness = () => createGitHubHarness({ token: doubleToken, prefix: '/api/v3' });

// Only the URLs differ there.
describe('Git provider contract: GitHub Enterprise Server', () => {
  for (const { name, run } of stageCases(createEnterpriseHarness, addressCases)) test(name, run);
});
