import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { DatedFile, DirectoryListing, GitProvider, GitRemote } from '../../src/ports/git-provider.ts';
import type { ContractCase } from './contract.ts';
import type { Interceptor } from './host-proxy.ts';
import { casesWithFolder } from './stage-cases.ts';
import { createRepository, type RepositoryDescription } from './git-repository.ts';

/** In what git providers may differ. */
export interface GitProviderTraits {
  /**
   * The date of a path whose later change has an older committer date than the commit that introduced it, since a clock
   * was wrong: that of the introducing commit, or the oldest date.
   */
  readonly clockSkew: 'introduction' | 'oldest-date';
  /** Whether history counts that a merge took nothing of. */
  readonly discardedHistory: 'counts' | 'ignored';
  /** A file whose path is not UTF-8 is listed with U+FFFD in place of the bytes, or is not listed. */
  readonly invalidUtf8: 'replaced' | 'omitted';
  /** Git fetches from a host, or from a folder of this machine. */
  readonly remote: 'url' | 'folder';
  /** What the former name of a renamed repository leads to: the repository under its new name, or nothing. */
  readonly formerName: 'repository' | 'nothing';
}

export interface GitProviderHarness {
  readonly provider: GitProvider;
  readonly traits: GitProviderTraits;
  /**
   * Makes a bare repository that git has in a folder available to the provider, in place of the one that had the name before.
   * The name has two segments, and an ending that the harness may not change. Returns the name to ask for. The folder is removed
   * afterwards.
   */
  publish(gitDir: string, name: string): Promise<string>;
  /** Renames a published repository, as its owner does on the host. Both names are names to ask for; the new one is not in use. */
  rename(from: string, to: string): Promise<void>;
  /** Whether git can fetch with this remote: whether the host accepts the value of `Authorization`. */
  acceptsGit(remote: GitRemote): Promise<boolean>;
  /** Control over the host that the provider asks; `'none'` if it asks nobody over a network. */
  readonly host: ProviderHost | 'none';
  /** The pull requests of the host; `'none'` if the provider can't open any, or has no credential for it. */
  readonly pullRequests: PullRequestControl | 'none';
  /** Releases everything, the providers included. Rejects if something went wrong that no case can see. */
  close(): Promise<void>;
}

/** A host that misbehaves. `startHostProxy` makes one of any host that speaks HTTP. */
export interface ProviderHost {
  /** Makes another provider of the same host that has cached nothing, with this time limit. The harness closes it. */
  createProvider(timeoutMs: number): GitProvider;
  /** Decides what happens to each request of the harness's providers; null, as at the beginning, lets the host answer all. */
  intercept(interceptor: Interceptor | null): void;
}

/** A pull request as the host has it. */
export interface HostedPullRequest {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly branch: string;
  readonly base: string;
  readonly isDraft: boolean;
}

export interface PullRequestControl {
  /** The open ones of the repository, the oldest first. The title is without what marks a draft. */
  open(repository: string): readonly HostedPullRequest[];
  close(repository: string, number: number): void;
  /** Opens one from a branch of this name in a fork. */
  openFromFork(repository: string, branch: string, base: string): void;
  /** From now on the credential may not see or open any. */
  forbid(): void;
}

/** What a case has at hand. */
export interface GitProviderStage extends Omit<GitProviderHarness, 'publish' | 'close'> {
  /** Makes a repository of this description, and publishes it. */
  readonly publish: (description: RepositoryDescription, name?: string) => Promise<string>;
  /** Lists all files below the directory, as pairs of path and date in seconds, sorted by path. */
  readonly list: (repository: string, directory?: string, provider?: GitProvider) => Promise<readonly Dated[]>;
}

/** A path and its date, in seconds. */
export type Dated = readonly [path: string, seconds: number];

export type StageCase = readonly [name: string, run: (stage: GitProviderStage) => Promise<void>];

/** The directory that the cases look below, unless it matters. */
export const agents = '.skep/microagents';

/** Turns cases that need a stage into contract cases, each with a harness of its own. */
export function stageCases(createHarness: () => Promise<GitProviderHarness>, cases: readonly StageCase[]): ContractCase[] {
  return casesWithFolder(createHarness, stageOf, cases);
}

function stageOf(harness: GitProviderHarness, folder: string): GitProviderStage {
  const { provider, traits, host, pullRequests } = harness;
  let made = 0;
  return {
    provider,
    traits,
    host,
    pullRequests,
    rename: (from, to) => harness.rename(from, to),
    acceptsGit: (remote) => harness.acceptsGit(remote),
    async publish(description, name = 'acme/shop') {
      made += 1;
      const gitDir = join(folder, `${made}.git`);
      await createRepository(gitDir, description);
      return await harness.publish(gitDir, name);
    },
    async list(repository, directory = agents, asked = provider) {
      const listing = await asked.listFiles(repository, { directory: () => directory, accepts: () => true });
      assert.equal(listing.directory, directory);
      return pairs(listing);
    },
  };
}

function pairs({ files }: DirectoryListing): readonly Dated[] {
  return files.map(({ path, createdAt }: DatedFile) => [path, createdAt / 1000] as const).toSorted(byPath);
}

export function byPath([a]: Dated, [b]: Dated): number {
  return a < b ? -1 : Number(a > b);
}
