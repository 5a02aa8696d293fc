import type { ContractCase } from './contract.ts';
import { contentCases } from './git-provider-content.ts';
import { dateCases } from './git-provider-dates.ts';
import { fileCases } from './git-provider-files.ts';
import { stageCases, type GitProviderHarness } from './git-provider-harness.ts';
import { listCases } from './git-provider-lists.ts';
import { hostCases } from './git-provider-hosts.ts';
import { pullRequestCases } from './git-provider-pull-requests.ts';
import { remoteCases } from './git-provider-remotes.ts';
import { repositoryCases } from './git-provider-repositories.ts';
import { secretCases } from './git-provider-secrets.ts';

const groups = [fileCases, dateCases, contentCases, repositoryCases, remoteCases, pullRequestCases, listCases, hostCases, secretCases];

/** One case of each kind of request, for a host of which only the addresses differ. */
export const addressCases = [...groups.flatMap((cases) => cases.slice(0, 1)), ...remoteCases.slice(1)];

/** The cases for an adapter that finds and lists repositories in a second way, and one case of each other kind of request. */
export const listingCases = [
  ...fileCases, ...dateCases, ...repositoryCases, ...hostCases, ...secretCases, ...remoteCases,
  ...[contentCases, pullRequestCases, listCases].flatMap((cases) => cases.slice(0, 1)),
];

/**
 * The contract of every git provider. The repositories are made with the real git program, so that the cases can show that
 * all providers return the same result for the same content and history.
 */
export function gitProviderContract(createHarness: () => Promise<GitProviderHarness>): ContractCase[] {
  return stageCases(createHarness, groups.flat());
}
