import type { Clock } from '../../ports/clock.ts';
import type { GitRemote } from '../../ports/git-provider.ts';
import type { ListingCache } from '../../ports/listing-cache.ts';
import { createMemoryListingCache } from './listing-cache.ts';

/** The options that every provider of repositories on another host has. */
export interface GitHostOptions {
  readonly clock: Clock;
  /** Limit of one listing, all its requests, retries and waits included, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number;
  /** How many requests are under way at the same time. */
  readonly concurrency?: number;
  /** Default: one in memory. */
  readonly listingCache?: ListingCache;
  /**
   * While the host can't be reached, times out or fails with a server error, a listing that it confirmed at most so many
   * milliseconds ago is served instead, with its `confirmedAt`. Default: null, a failure is a failure.
   */
  readonly serveStaleForMs?: number | null;
  /** How many files a directory may hold. Default: 100,000. */
  readonly maxFiles?: number;
  /** How large a response may be, in bytes. */
  readonly maxAnswerBytes?: number;
}

/** Fills in the defaults. How much a host takes at once differs. */
export function withHostDefaults<T extends GitHostOptions>(
  options: T,
  limits: Required<Pick<GitHostOptions, 'concurrency' | 'maxAnswerBytes'>>,
): T & Required<GitHostOptions> {
  const listingCache = options.listingCache ?? createMemoryListingCache();
  return { timeoutMs: 30_000, serveStaleForMs: null, maxFiles: 100_000, ...limits, ...options, listingCache };
}

/** The credential as hosts take it from git: any user name, and the token as the password. */
export function basicAuthorization(user: string, token: string): string {
  return `Basic ${Buffer.from(`${user}:${token}`, 'utf8').toString('base64')}`;
}

/** Where git fetches a repository from. `pagesUrl` has no slash at its end. */
export function hostedRemote(pagesUrl: string, repository: string, authorization: string | null): GitRemote {
  const path = repository.split('/').map(encodeURIComponent).join('/');
  return { url: `${pagesUrl}/${path}.git`, authorization };
}
