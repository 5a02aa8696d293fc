import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { DatedFile, DirectoryListing, GitProvider } from '../../src/ports/git-provider.ts';
import type { ContractCase } from './contract.ts';
import { casesWithFolder } from './stage-cases.ts';
import { createRepository, type RepositoryDescription } from './git-repository.ts';

/** In what git providers may differ. */
export interface GitProviderTraits {
  /**
   * The date of a path whose later change has an older committer date than the commit that introduced it, since a clock
   * was wrong: that of the introducing commit, or the oldest date.
   */
  readonly clockSkew: 'introduction' | 'oldest-date';
  /** Does history count that a merge took nothing of? */
  readonly discardedHistory: 'counts' | 'ignored';
  /** A file whose path is not UTF-8 is listed with U+FFFD in place of the bytes, or is not listed. */
  readonly invalidUtf8: 'replaced' | 'omitted';
  /** Git fetches from a host, or from a folder of this machine. */
  readonly remote: 'url' | 'folder';
}

export interface GitProviderHarness {
  readonly provider: GitProvider;
  readonly traits: GitProviderTraits;
  /**
   * Makes a bare repository that git has in a folder available to the provider, in place of what had the name before.
   * The name has two segments, and an ending that the harness may not change. Answers with the name to ask for. The
   * folder is removed afterwards.
   */
  publish(gitDir: string, name: string): Promise<string>;
  close(): Promise<void>;
}

/** What a case has in hand. */
export interface GitProviderStage extends Pick<GitProviderHarness, 'provider' | 'traits'> {
  /** Makes a repository of this description, and publishes it. */
  readonly publish: (description: RepositoryDescription, name?: string) => Promise<string>;
  /** Lists all files below the directory, as pairs of path and date in seconds, sorted by path. */
  readonly list: (repository: string, directory?: string) => Promise<(readonly [string, number])[]>;
}

export type StageCase = readonly [name: string, run: (stage: GitProviderStage) => Promise<void>];

/** The directory that the cases look below, unless it matters. */
export const agents = '.skep/microagents';

/** Turns cases that need a stage into contract cases, each with a harness of its own. */
export function stageCases(createHarness: () => Promise<GitProviderHarness>, cases: readonly StageCase[]): ContractCase[] {
  return casesWithFolder(createHarness, stageOf, cases);
}

function stageOf(harness: GitProviderHarness, folder: string): GitProviderStage {
  const { provider, traits } = harness;
  let made = 0;
  return {
    provider,
    traits,
    async publish(description, name = 'acme/shop') {
      made += 1;
      const gitDir = join(folder, `${made}.git`);
      await createRepository(gitDir, description);
      return await harness.publish(gitDir, name);
    },
    async list(repository, directory = agents) {
      const listing = await provider.listFiles(repository, { directory: () => directory, accepts: () => true });
      assert.equal(listing.directory, directory);
      return pairs(listing);
    },
  };
}

function pairs({ files }: DirectoryListing): (readonly [string, number])[] {
  return files.map(({ path, createdAt }: DatedFile) => [path, createdAt / 1000] as const).toSorted(byPath);
}

export function byPath([a]: readonly [string, number], [b]: readonly [string, number]): number {
  return a < b ? -1 : Number(a > b);
}
