import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { DatedFile, DirectoryListing, GitProvider, GitRemote } from '../../src/ports/git-provider.ts';
import type { ListingCache } from '../../src/ports/listing-cache.ts';
import { textOf, type ContractCase } from './contract.ts';
import type { Interceptor } from './host-proxy.ts';
import { casesWithFolder } from './stage-cases.ts';
import { createRepository, type RepositoryDescription } from './git-repository.ts';

/** The permitted differences between git providers. */
export interface GitProviderTraits {
  /**
   * The date of a path if a wrong clock gave a later change an older committer date than the introducing commit: the date of
   * the introducing commit, or the oldest date.
   */
  readonly clockSkew: 'introduction' | 'oldest-date';
  /** Does history count if its merge took nothing from it? */
  readonly discardedHistory: 'counts' | 'ignored';
  /** Is a path that is not UTF-8 listed with U+FFFD instead of the bytes, or not listed? */
  readonly invalidUtf8: 'replaced' | 'omitted';
  /** Does git fetch from a host, or from a local folder? */
  readonly remote: 'url' | 'folder';
  /** Does the former name of a renamed repository find the repository under its new name, or nothing? */
  readonly formerName: 'repository' | 'nothing';
}

export interface GitProviderHarness {
  readonly provider: GitProvider;
  readonly traits: GitProviderTraits;
  /** The provider's credential, and everything that contains it in another form. The suite searches for them. Empty if there is none. */
  readonly secrets: readonly string[];
  /**
   * Makes the bare repository in the folder available to the provider. Replaces an earlier repository of this name. The name has
   * two segments, and the harness must not change its end. Returns the name for the provider. The folder is removed afterwards.
   *
   * Resolves when the provider can see the branches. Many hosts handle a push after git has ended, so the harness must ask the host until
   * it shows them. The suite does not wait: it calls `find` once after the first push to each name.
   */
  publish(gitDir: string, name: string): Promise<string>;
  /** Renames a published repository, as its owner does on the host. Both names are names for the provider. The new one is unused. */
  rename(from: string, to: string): Promise<void>;
  /** Archives a published repository on the host. Absent if the host can't. */
  readonly archive?: ((name: string) => Promise<void>) | undefined;
  /** Returns true if git can fetch with this remote, so the host accepts the value of `Authorization`. */
  acceptsGit(remote: GitRemote): Promise<boolean>;
  /** Controls the provider's host. `'none'` if the provider uses no network. */
  readonly host: ProviderHost | 'none';
  /** Controls the host's pull requests. `'none'` if the provider can't open any, or has no credential for it. */
  readonly pullRequests: PullRequestControl | 'none';
  /** Closes everything, including the providers. Rejects after an error that no case can detect. */
  close(): Promise<void>;
}

/** A host with simulated faults. `startHostProxy` adds them to any HTTP host. */
export interface ProviderHost {
  /**
   * Returns another provider for the same host, with an empty cache and this timeout. The harness closes it. If the adapter takes a
   * `ListingCache`, the harness passes this one on.
   */
  createProvider(timeoutMs: number, listingCache?: ListingCache): GitProvider;
  /** Sets the interceptor of all requests of the harness's providers. With null, the default, the host answers all requests. */
  intercept(interceptor: Interceptor | null): void;
}

/** A pull request on the host. */
export interface HostedPullRequest {
  readonly number: number;
  readonly title: string;
  readonly body: string;
  readonly branch: string;
  readonly base: string;
  readonly isDraft: boolean;
}

/** What the owner of a repository does on the host, without the provider. A promise resolves when the provider can see the change. */
export interface PullRequestControl {
  /** If the base has all commits of a branch, does the host refuse a pull request, or open an empty one? */
  readonly emptyPullRequests: 'refused' | 'opened';
  /** Returns the open pull requests of the repository, oldest first. Leaves out those of forks. Titles have no draft prefix. */
  open(repository: string): Promise<readonly HostedPullRequest[]>;
  close(repository: string, number: number): Promise<void>;
  /** Opens a pull request from a branch of this name in a fork. */
  openFromFork(repository: string, branch: string, base: string): Promise<void>;
  /**
   * From now on, the credential can find the repository, but can't read or open its pull requests. A host may answer such a request with
   * 403, or with 404. The suite expects `pull_request_refused` with `pull_request_forbidden` for both, never `repository_not_found`.
   */
  forbid(): Promise<void>;
}

/** The tools of a case. */
export interface GitProviderStage extends Omit<GitProviderHarness, 'publish' | 'close'> {
  /** Makes a repository from the description and publishes it. */
  readonly publish: (description: RepositoryDescription, name?: string) => Promise<string>;
  /** Lists all files below the directory, as pairs of path and date in seconds, sorted by path. */
  readonly list: (repository: string, directory?: string, provider?: GitProvider) => Promise<readonly Dated[]>;
}

/** A path and its date, in seconds. */
export type Dated = readonly [path: string, seconds: number];

export type StageCase = readonly [name: string, run: (stage: GitProviderStage) => Promise<void>];

/** The directory that the cases list by default. */
export const agents = '.skep/microagents';

/** Turns cases that need a stage into contract cases. Each case gets its own harness. */
export function stageCases(createHarness: () => Promise<GitProviderHarness>, cases: readonly StageCase[]): ContractCase[] {
  return casesWithFolder(createHarness, stageOf, cases.map(([name, run]) => [name, (stage) => runWithInterceptors(stage, run)]));
}

/** If an interceptor throws, the case fails with that error. The provider only sees that a connection breaks. */
async function runWithInterceptors({ host, ...stage }: GitProviderStage, run: StageCase[1]): Promise<void> {
  const failures: { readonly error: unknown }[] = [];
  const watched = (interceptor: Interceptor): Interceptor => async () => {
    try {
      return await interceptor();
    } catch (error) {
      failures.push({ error });
      throw error;
    }
  };
  const watchedHost = host === 'none' ? host : {
    ...host,
    intercept: (interceptor: Interceptor | null) => host.intercept(interceptor === null ? null : watched(interceptor)),
  };
  const failed = await run({ ...stage, host: watchedHost }).then(() => null, (error: unknown) => ({ error }));
  const first = failures[0] ?? failed;
  if (first !== null) throw first.error;
}

function stageOf(harness: GitProviderHarness, folder: string): GitProviderStage {
  const { provider, traits, secrets, host, pullRequests, archive } = harness;
  const published = new Set<string>();
  let made = 0;
  return {
    provider,
    traits,
    secrets,
    host,
    pullRequests,
    archive,
    rename: (from, to) => harness.rename(from, to),
    acceptsGit: (remote) => harness.acceptsGit(remote),
    async publish(description, name = 'acme/shop') {
      made += 1;
      const gitDir = join(folder, `${made}.git`);
      await createRepository(gitDir, description);
      const repository = await harness.publish(gitDir, name);
      if (!published.has(name)) await assertPublished(provider, repository, description);
      published.add(name);
      return repository;
    },
    async list(repository, directory = agents, asked = provider) {
      const listing = await asked.listFiles(repository, { directory: () => directory, accepts: () => true });
      assert.equal(listing.directory, directory);
      return pairs(listing);
    },
  };
}

/** Fails if the provider does not see the repository. Without this, every case would fail for another reason. */
async function assertPublished(provider: GitProvider, repository: string, { commits, unborn }: RepositoryDescription): Promise<void> {
  const expected = `publish resolves when the provider can see the branches of ${repository}`;
  const found = await provider.find(repository).catch((cause: unknown) => {
    throw Object.assign(new assert.AssertionError({ message: `${expected}, but then find fails with ${textOf(cause)}` }), { cause });
  });
  const isVisible = commits.length === 0 || unborn !== undefined || found.defaultBranch !== null;
  assert.ok(isVisible, `${expected}, but then find returns no default branch`);
}

function pairs({ files }: DirectoryListing): readonly Dated[] {
  return files.map(({ path, createdAt }: DatedFile) => [path, createdAt / 1000] as const).toSorted(byPath);
}

export function byPath([a]: Dated, [b]: Dated): number {
  return a < b ? -1 : Number(a > b);
}
