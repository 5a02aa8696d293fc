import type { ContractCase } from './contract.ts';
import { changeCases } from './repository-checkouts-changes.ts';
import { checkoutCases, type RepositoryCheckoutsHarness } from './repository-checkouts-harness.ts';
import { pushCases } from './repository-checkouts-pushes.ts';
import { refusalCases } from './repository-checkouts-refusals.ts';
import { snapshotCases } from './repository-checkouts-snapshots.ts';
import { contentCases } from './repository-checkouts-content.ts';

/** The cases that depend on the host of the repository. Those of a snapshot see only the work tree. */
export const hostDependentCases = [...contentCases, ...changeCases, ...refusalCases, ...pushCases];

/** The contract of every `RepositoryCheckouts`. The repositories are made with the real git program. */
export function repositoryCheckoutsContract(createHarness: () => Promise<RepositoryCheckoutsHarness>): ContractCase[] {
  return checkoutCases(createHarness, [...hostDependentCases, ...snapshotCases]);
}
