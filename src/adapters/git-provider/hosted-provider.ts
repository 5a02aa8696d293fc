import { createHash } from 'node:crypto';
import { sentenceOfFailure } from '../shared/failure-sentences.ts';
import { Failure, isFailure, isFailureOf } from '../../domain/failure.ts';
import { neverAborts } from '../../ports/abort-signals.ts';
import type { CheckResult } from '../../ports/check-result.ts';
import type { Clock } from '../../ports/clock.ts';
import type { DirectoryListing, FileContentId, FileQuery, GitProvider, GitRemote, RepositoryInfo } from '../../ports/git-provider.ts';
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

/** Returns the defaults of the options. The host determines the others: `concurrency`, `maxResponseBytes` and `maxRequests`. */
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

/** Returns the scope of a credential's entries in the `ListingCache`. It contains the credential only as a digest. */
export function cacheScope(provider: string, url: string, credential: unknown): string {
  const owner = credential === null ? 'none' : createHash('sha256').update(JSON.stringify(credential)).digest('hex');
  return `${provider} ${url} ${owner}`;
}

/** Returns the remote from which git fetches a repository. `pagesUrl` has no slash at its end. */
export function hostedRemote(pagesUrl: string, repository: string, authorization: string | null): GitRemote {
  const path = repository.split('/').map(encodeURIComponent).join('/');
  return { url: `${pagesUrl}/${path}.git`, authorization };
}

/** A method of the port, always called with a signal. */
type WithSignal<Method extends (...args: never[]) => unknown> = (...args: Required<Parameters<Method>>) => ReturnType<Method>;

type SharedMethod = 'find' | 'remote' | 'searchRepositories' | 'listBranches' | 'openPullRequest';

type SharedMethods = { readonly [M in SharedMethod]: WithSignal<Required<GitProvider>[M]> };

/**
 * The host-specific part of a provider. The methods end when their signal fires. `openPullRequest` is never called twice at once for one
 * branch.
 */
export interface GitHost extends Pick<GitProvider, 'name' | 'family' | 'hosts'>, SharedMethods {
  readonly failures: ProviderFailures;
  readonly source: ListingSource;
  /** Separates hosts and credentials in the `ListingCache`, see {@link cacheScope}. */
  readonly scope: string;
  /**
   * Returns the content with this id, which has the form of an id. Null if the repository does not have it. Content of up to `maxBytes` is
   * returned; more may fail. A response that encodes the content needs more bytes.
   */
  readBlob(repository: string, blobId: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null>;
  check(signal: AbortSignal): Promise<CheckResult>;
  /** Turns the adapter's own errors into failures. Returns every other error unchanged, because it may be the reason of a signal. */
  failureOf(error: unknown, repository: string): unknown;
  /** A sentence about the permissions that the credential needs. */
  readonly permissions: string;
}

// An error response may be longer than the file.
const minResponseBytes = 64 * 1024;

/**
 * Serves the repositories of a host. Runs each call within the time limit, and with the client's budget. Equal
 * requests at the same time share one run, which ends when no caller is left.
 */
export function createHostedProvider(
  host: GitHost, limit: TimeLimit, { listingCache }: Pick<Required<GitHostOptions>, 'listingCache'>,
): GitProvider {
  const listing = createIncrementalListing(host.source, createJsonCache(listingCache, host.scope));
  const listings = createSingleFlight<Opened>();
  const finds = createSingleFlight<RepositoryInfo>();
  const reads = createSingleFlight<Buffer | null>();
  const pullRequests = new KeyedMutex();
  const ask = createAsk(host, limit);

  /** Equal requests share a run. `key` identifies the request within the repository. The time limit is that of the run. */
  const share = <T>(runs: SingleFlight<T>, repository: string, key: string, caller: AbortSignal | undefined, work: Work<T>): Promise<T> =>
    runs.join(`${repository}\0${key}`, caller ?? neverAborts, (wanted) => ask(repository, wanted, work));

  /** A caller may have joined a run for other files or another directory. Then it needs its own run. */
  async function list(repository: string, query: FileQuery, caller: AbortSignal): Promise<DirectoryListing> {
    for (;;) {
      const opened = await share(listings, repository, '', caller, (signal) => listing.list(repository, query, signal));
      const selected = selectFiles(opened, query);
      if (selected !== null) return selected;
    }
  }

  async function read(repository: string, { path, blobId }: FileContentId, maxBytes: number, caller?: AbortSignal): Promise<Buffer> {
    const most = Math.max(maxBytes, minResponseBytes);
    const readBlob: Work<Buffer | null> = (signal) => host.readBlob(repository, blobId, most, signal);
    const content = oidForm.test(blobId) ? await share(reads, repository, `${blobId} ${most}`, caller, readBlob) : null;
    if (content === null) throw new Failure('file_not_found', { path });
    if (content.length > maxBytes) throw host.failures.tooLarge(`${maxBytes} bytes in a file`);
    return content;
  }

  return {
    name: host.name,
    family: host.family,
    hosts: host.hosts,
    async listFiles(repository, anyQuery, caller) {
      const query = memoized(anyQuery);
      // Each run has a time limit. This one is for all runs that the caller needs.
      return await limit.run(caller, (signal) => list(repository, query, signal));
    },
    readFile: read,
    find: (repository, caller) => share(finds, repository, '', caller, (signal) => host.find(repository, signal)),
    remote: (repository, caller) => ask(repository, caller, (signal) => host.remote(repository, signal)),
    searchRepositories: (text, page, caller) => ask('', caller, (signal) => host.searchRepositories(text, page, signal)),
    listBranches: (repository, page, caller) => ask(repository, caller, (signal) => host.listBranches(repository, page, signal)),
    openPullRequest: (repository, request, caller) =>
      ask(repository, caller, (signal) =>
        pullRequests.runExclusive(`${repository}\0${request.branch}`, () => host.openPullRequest(repository, request, signal), signal)),
    check: () => check(host, ask),
    async close() {
      limit.close();
      await Promise.all([listings.settled(), finds.settled(), reads.settled(), pullRequests.settled()]);
    },
  };
}

type Work<T> = (signal: AbortSignal) => Promise<T>;
type Ask = ReturnType<typeof createAsk>;

/** Returns a function that runs work with a time limit and a budget of its own, and turns its errors into failures. */
function createAsk(host: GitHost, limit: TimeLimit) {
  return async <T>(repository: string, caller: AbortSignal | undefined, work: Work<T>): Promise<T> => {
    try {
      return await limit.run(caller, (signal) => withBudget(() => work(signal)));
    } catch (error) {
      throw host.failureOf(error, repository);
    }
  };
}

async function check(host: GitHost, ask: Ask): Promise<CheckResult> {
  try {
    return await ask('', undefined, (signal) => host.check(signal));
  } catch (failure) {
    if (!isFailure(failure)) return { ok: false, detail: 'the check failed' };
    const detail = sentenceOfFailure(failure);
    if (isFailureOf(failure, 'provider_rate_limited')) return { ok: false, detail, refusal: 'rate_limit' };
    if (isFailureOf(failure, 'provider_unauthorized')) return { ok: false, detail: `${detail} ${host.permissions}`, refusal: 'credential' };
    return { ok: false, detail: `${detail} Check its URL, and the network on the way there.` };
  }
}
