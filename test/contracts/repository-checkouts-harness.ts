import { join } from 'node:path';
import type { CheckoutRequest, RepositoryCheckouts } from '../../src/ports/repository-checkouts.ts';
import type { ContractCase } from './contract.ts';
import { casesWithFolder } from './stage-cases.ts';
import { createRepository, type RepositoryDescription } from './git-repository.ts';
import { openWorkTree, type WorkTree } from './work-tree.ts';

/** In what adapters may differ. */
export interface RepositoryCheckoutsTraits {
  /** Whether the archive is a work tree that git accepts, or holds only the files. */
  readonly workTree: 'git' | 'files';
  /** Whether the work tree names its remote, as one of a host does, and one of this machine must not. */
  readonly origin: 'named' | 'none';
  /** Whether there is a credential, and a host that may refuse it. */
  readonly access: 'guarded' | 'open';
}

export type CheckoutSource = Pick<CheckoutRequest, 'provider' | 'repository' | 'remote'>;

export interface RepositoryCheckoutsHarness {
  readonly checkouts: RepositoryCheckouts;
  readonly traits: RepositoryCheckoutsTraits;
  /**
   * Makes a bare repository that git has in a folder available, in place of the one that had the name before. The folder is removed
   * afterwards.
   */
  publish(gitDir: string, name: string): Promise<CheckoutSource>;
  /** A source of that name whose repository does not exist. */
  missing(name: string): Promise<CheckoutSource>;
  /** A source of that name whose host refuses the credential, or does not let it read this repository. Only if `access` is guarded. */
  refused(name: string, what: 'credential' | 'repository'): Promise<CheckoutSource>;
  close(): Promise<void>;
}

/** What a case has at hand. */
export interface CheckoutStage extends Pick<RepositoryCheckoutsHarness, 'checkouts' | 'traits' | 'missing' | 'refused'> {
  /** Makes a repository of this description, and publishes it. */
  readonly publish: (description: RepositoryDescription, name?: string) => Promise<CheckoutSource & { readonly gitDir: string }>;
  /** Checks the branch out, and unpacks it. */
  readonly open: (source: CheckoutSource, branch?: string | null) => Promise<WorkTree>;
}

export type CheckoutCase = readonly [name: string, run: (stage: CheckoutStage) => Promise<void>];

export const noProgress = (): void => undefined;
export const never: AbortSignal = new AbortController().signal;

/** Turns cases that need a stage into contract cases, each with a harness of its own. */
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
    async open({ provider, repository, remote }, branch = null) {
      return await openWorkTree(await checkouts.checkOut({ provider, repository, remote, branch }, noProgress, never), next());
    },
  };
}
