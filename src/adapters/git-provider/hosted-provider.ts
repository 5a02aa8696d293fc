import { createHash } from 'node:crypto';
import { sentenceOfFailure } from '../shared/status-and-error-messages.ts';
import type { PullRequest } from '../../domain/change.ts';
import { Failure, isFailure, isFailureOf } from '../../domain/failure.ts';
import type { GitHostFamily } from '../../domain/microagent.ts';
import type { CheckResult } from '../../ports/check-result.ts';
import type { Clock } from '../../ports/clock.ts';
import type {
  Branch, DirectoryListing, FileContentId, FileQuery, GitProvider, GitRemote, HostPage, HostPageRequest, ListedRepository,
  PullRequestRequest, RepositoryInfo,
} from '../../ports/git-provider.ts';
import type { ListingCache } from '../../ports/listing-cache.ts';
import { oidForm } from '../shared/git-process.ts';
import { KeyedMutex } from '../shared/keyed-mutex.ts';
import { isUnencryptedRemote } from '../shared/plain-http.ts';
import type { ProviderFailures } from '../shared/provider-failures.ts';
import { createSingleFlight, type SingleFlight } from '../shared/single-flight.ts';
import type { TimeLimit } from '../shared/timeout.ts';
import { withBudget } from './retrying-http-client.ts';
import { createIncrementalListing, type ListingSource, memoized, type Opened, selectFiles } from './incremental-listing.ts';
import { createJsonCache, createMemoryListingCache } from './listing-caches.ts';

export interface GitHostOptions {
  readonly clock: Clock;
  /** The time limit of one listing, including all requests, retries and waits, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number;
  /** How many requests are under way at the same time. */
  readonly concurrency?: number;
  /** Default: a cache in memory. */
  readonly listingCache?: ListingCache;
  /** How many files a directory may hold. Default: 100,000. */
  readonly maxFiles?: number;
  /** How large a response may be, in bytes. */
  readonly maxResponseBytes?: number;
  /**
   * Limits of one listing. A later one continues with the dates that were found. `maxBytes` is for all responses together. Default: 128
   * MiB.
   */
  readonly maxRequests?: number;
  readonly maxBytes?: number;
  /** Hosts that get the credential over unencrypted `http://`. Loopback hosts need no entry. */
  readonly httpHosts?: readonly string[];
}

export const hostDefaults = () => ({
  timeoutMs: 30_000,
  listingCache: createMemoryListingCache(),
  maxFiles: 100_000,
  maxBytes: 128 * 2 ** 20,
  httpHosts: [],
});

/** Throws a `TypeError` if the credential would be sent unencrypted and the host is not in `httpHosts`. */
export function requireEncryption(url: string, httpHosts: readonly string[] = []): void {
  if (!isUnencryptedRemote(url, httpHosts)) return;
  throw new TypeError(`The credential could be read on the way to ${new URL(url).host}: use https, or name the host in httpHosts`);
}

/** Returns the credential in the form that hosts accept from git: any user name, and the token as the password. */
export function basicAuthorization(user: string, token: string): string {
  return `Basic ${Buffer.from(`${user}:${token}`, 'utf8').toString('base64')}`;
}

export function cacheScope(provider: string, url: string, credential: unknown): string {
  const owner = credential === null ? 'none' : createHash('sha256').update(JSON.stringify(credential)).digest('hex');
  return `${provider} ${url} ${owner}`;
}

/** Returns the remote from which git fetches a repository. `pagesUrl` has no slash at its end. */
export function hostedRemote(pagesUrl: string, repository: string, authorization: string | null): GitRemote {
  const path = repository.split('/').map(encodeURIComponent).join('/');
  return { url: `${pagesUrl}/${path}.git`, authorization };
}

/** The host-specific part of a provider. The methods end when their signal fires. */
export interface GitHost {
  readonly name: string;
  readonly family: GitHostFamily;
  readonly hosts: readonly string[];
  readonly failures: ProviderFailures;
  readonly source: ListingSource;
  readonly scope: string;
  find(repository: string, signal: AbortSignal): Promise<RepositoryInfo>;
  remote(repository: string, signal: AbortSignal): Promise<GitRemote>;
  /** Returns the content with this id. Null if the repository does not have it. Fails if the response is larger than `maxResponseBytes`. */
  readBlob(repository: string, blobId: string, maxResponseBytes: number, signal: AbortSignal): Promise<Buffer | null>;
  searchRepositories(text: string, page: HostPageRequest, signal: AbortSignal): Promise<HostPage<ListedRepository>>;
  listBranches(repository: string, page: HostPageRequest, signal: AbortSignal): Promise<HostPage<Branch>>;
  /** Never called twice at once for one branch. */
  openPullRequest(repository: string, request: PullRequestRequest, signal: AbortSignal): Promise<PullRequest>;
  check(signal: AbortSignal): Promise<CheckResult>;
  failureOf(error: unknown, repository: string): unknown;
  /** A sentence about the permissions that the credential needs. */
  readonly permissions: string;
}

// An error response may be longer than the file.
const minResponseBytes = 64 * 1024;

/** Serves the repositories of a host. Equal requests at the same time share one run, which ends when no caller is left. */
export function createHostedProvider(host: GitHost, limit: TimeLimit, options: Required<GitHostOptions>): GitProvider {
  const listing = createIncrementalListing(host.source, createJsonCache(options.listingCache, host.scope));
  const listings = createSingleFlight<Opened>();
  const finds = createSingleFlight<RepositoryInfo>();
  const reads = createSingleFlight<Buffer | null>();
  const pullRequests = new KeyedMutex();
  const { ask, share } = createCalls(host, limit);

  /** A caller may have joined a run for other files or another directory. Then it needs its own run. */
  async function list(repository: string, query: FileQuery, signal: AbortSignal): Promise<DirectoryListing> {
    for (;;) {
      const opened = await share(listings, repository, '', signal, (within) => listing.list(repository, query, within));
      const selected = selectFiles(opened, query);
      if (selected !== null) return selected;
    }
  }

  async function read(repository: string, { path, blobId }: FileContentId, maxBytes: number, signal?: AbortSignal): Promise<Buffer> {
    const most = Math.max(maxBytes, minResponseBytes);
    const readBlob = (within: AbortSignal): Promise<Buffer | null> => host.readBlob(repository, blobId, most, within);
    const content = oidForm.test(blobId) ? await share(reads, repository, `${blobId} ${most}`, signal, readBlob) : null;
    if (content === null) throw new Failure('file_not_found', { path });
    if (content.length > maxBytes) throw host.failures.tooLarge(`${maxBytes} bytes in a file`);
    return content;
  }

  return {
    name: host.name,
    family: host.family,
    hosts: host.hosts,
    async listFiles(repository, anyQuery, signal) {
      const query = memoized(anyQuery);
      return await limit.run(signal, (within) => list(repository, query, within));
    },
    readFile: read,
    find: (repository, signal) => share(finds, repository, '', signal, (within) => host.find(repository, within)),
    remote: (repository, signal) => limit.run(signal, (within) => host.remote(repository, within)),
    searchRepositories: (text, page, signal) => ask('', signal, (within) => host.searchRepositories(text, page, within)),
    listBranches: (repository, page, signal) => ask(repository, signal, (within) => host.listBranches(repository, page, within)),
    openPullRequest: (repository, request, signal) =>
      ask(repository, signal, (within) =>
        pullRequests.runExclusive(`${repository}\0${request.branch}`, () => host.openPullRequest(repository, request, within), within)),
    check: () => check(host, limit),
    async close() {
      limit.close();
      await Promise.all([listings.settled(), finds.settled(), reads.settled(), pullRequests.settled()]);
    },
  };
}

function createCalls(host: GitHost, limit: TimeLimit) {
  type Run<T> = (signal: AbortSignal) => Promise<T>;

  /** Each run has its own time limit and budget. */
  const ask = <T>(repository: string, signal: AbortSignal | undefined, run: Run<T>): Promise<T> =>
    limit.run(signal, (within) => withBudget(() => run(within))).catch((error: unknown) => {
      throw host.failureOf(error, repository);
    });
  /** Equal calls share a run. `key` identifies the request within the repository. */
  const share = <T>(
    flight: SingleFlight<T>, repository: string, key: string, signal: AbortSignal | undefined, run: Run<T>,
  ): Promise<T> =>
    limit.run(signal, (caller) => flight.join(`${repository}\0${key}`, caller, (wanted) => ask(repository, wanted, run)));
  return { ask, share };
}

async function check(host: GitHost, limit: TimeLimit): Promise<CheckResult> {
  try {
    return await limit.run(undefined, (signal) => host.check(signal));
  } catch (error) {
    const failure = host.failureOf(error, '');
    if (!isFailure(failure)) return { ok: false, detail: 'the check failed' };
    const detail = sentenceOfFailure(failure);
    if (isFailureOf(failure, 'provider_rate_limited')) return { ok: false, detail, refusal: 'rate_limit' };
    if (isFailureOf(failure, 'provider_unauthorized')) return { ok: false, detail: `${detail} ${host.permissions}`, refusal: 'credential' };
    return { ok: false, detail: `${detail} Check its URL, and the network on the way there.` };
  }
}
