import { join } from 'node:path';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { CheckoutRequest, RepositoryCheckouts, WorkTreeRequest } from '../../src/ports/repository-checkouts.ts';
import type { ContractCase } from './contract.ts';
import { casesWithFolder } from './stage-cases.ts';
import { createRepository, type RepositoryDescription } from './git-repository.ts';
import { openWorkTree, type WorkTree } from './work-tree.ts';

/** The permitted differences between adapters. */
export interface RepositoryCheckoutsTraits {
  /** Is the archive a work tree that git accepts, or only the files? */
  readonly workTree: 'git' | 'files';
  /** Does the work tree name its remote? It must for a host, and must not for a local folder. */
  readonly origin: 'named' | 'none';
  /** Is there a credential that a host can refuse? */
  readonly access: 'guarded' | 'open';
}

export type CheckoutSource = Pick<CheckoutRequest, 'provider' | 'repository' | 'remote'>;

export interface RepositoryCheckoutsHarness {
  readonly checkouts: RepositoryCheckouts;
  readonly traits: RepositoryCheckoutsTraits;
  /**
   * Makes the bare repository in the folder available. Replaces an earlier repository of this name. The folder is removed afterwards.
   */
  publish(gitDir: string, name: string): Promise<CheckoutSource>;
  /** Returns a source of this name without a repository. */
  missing(name: string): Promise<CheckoutSource>;
  /** Returns a source whose host refuses the credential, or its access to the repository. Only called if `access` is `guarded`. */
  refused(name: string, what: 'credential' | 'repository'): Promise<CheckoutSource>;
  close(): Promise<void>;
}

/** The tools of a case. */
export interface CheckoutStage extends Pick<RepositoryCheckoutsHarness, 'checkouts' | 'traits' | 'missing' | 'refused'> {
  /** Makes a repository from the description and publishes it. */
  readonly publish: (description: RepositoryDescription, name?: string) => Promise<CheckoutSource & { readonly gitDir: string }>;
  /** Checks out the branch and unpacks the archive. */
  readonly open: (source: CheckoutSource & Pick<WorkTreeRequest, 'author'>, branch?: string | null) => Promise<WorkTree>;
}

export type CheckoutCase = readonly [name: string, run: (stage: CheckoutStage) => Promise<void>];

export const noProgress = (): void => undefined;

/** Turns cases that need a stage into contract cases. Each case gets its own harness. */
export function checkoutCases(createHarness: () => Promise<RepositoryCheckoutsHarness>, cases: readonly CheckoutCase[]): ContractCase[] {
  return casesWithFolder(createHarness, stageOf, cases);
}

function stageOf(harness: RepositoryCheckoutsHarness, folder: string): CheckoutStage {
  const { checkouts, traits } = harness;
  let made = 0;
  const next = (): string => {
    made += 1;
    return join(folder, String(made));
  };
  return {
    checkouts,
    traits,
    missing: (name) => harness.missing(name),
    refused: (name, what) => harness.refused(name, what),
    async publish(description, name = 'acme/shop') {
      const gitDir = `${next()}.git`;
      await createRepository(gitDir, description);
      return { ...(await harness.publish(gitDir, name)), gitDir };
    },
    async open({ provider, repository, remote, author }, branch = null) {
      const request = { provider, repository, remote, branch, ...(author && { author }) };
      return await openWorkTree(await checkouts.checkOut(request, noProgress, neverAborts), next());
    },
  };
}
