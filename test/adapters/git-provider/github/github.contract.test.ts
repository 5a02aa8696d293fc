import { describe, test } from 'vitest';
import { addressCases, gitProviderContract, listingCases } from '../../../contracts/git-provider.ts';
import { stageCases } from '../../../contracts/git-provider-harness.ts';
import { doubleToken } from '../../../doubles/github/index.ts';
import { createGitHubHarness } from './contract-harness.ts';

const withToken = () => createGitHubHarness({ token: doubleToken });
const withoutCredential = () => createGitHubHarness({ token: null });
const enterpriseServer = () => createGitHubHarness({ token: doubleToken, prefix: '/api/v3' });

describe.each([
  ['GitHub with a token', gitProviderContract(withToken)],
  // Repositories are then found and listed by REST instead of GraphQL. Everything else is the same.
  ['GitHub without a credential', stageCases(withoutCredential, listingCases)],
  // Only the URLs differ there.
  ['GitHub Enterprise Server', stageCases(enterpriseServer, addressCases)],
] as const)('Git provider contract: %s', (_, cases) => {
  for (const { name, run } of cases) test(name, run);
});
