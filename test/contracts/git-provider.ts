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

/** The cases that do not depend on the files and the history of a repository. */
export const accessCases = [...contentCases, ...repositoryCases, ...remoteCases, ...pullRequestCases, ...listCases, ...hostCases];

/**
 * The contract of every git provider. The repositories are made with the real git program, so that the cases can show that
 * all providers return the same result for the same content and history.
 */
export function gitProviderContract(createHarness: () => Promise<GitProviderHarness>): ContractCase[] {
  return stageCases(createHarness, [...fileCases, ...dateCases, ...accessCases]);
}
