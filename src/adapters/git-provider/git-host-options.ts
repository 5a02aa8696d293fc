import type { Clock } from '../../ports/clock.ts';
import type { GitRemote } from '../../ports/git-provider.ts';
import type { ListingCache } from '../../ports/listing-cache.ts';
import { createRecentKnowledge } from './memory-listing-cache.ts';

/** What every provider of repositories on another host can be told. */
export interface GitHostOptions {
  readonly clock: Clock;
  /** Limit of one listing, all its requests, retries and waits included, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number;
  /** How many requests are under way at the same time. */
  readonly concurrency?: number;
  /** Where what was learnt is kept; in memory, unless it is given. */
  readonly knowledge?: ListingCache;
  /**
   * While the host can't be reached, answers with a time-out or fails with a server error, a listing that it confirmed
   * at most so many milliseconds ago is served instead, with its `confirmedAt`. Null, the default: a failure is a failure.
   */
  readonly serveStaleForMs?: number | null;
  /** How many files a directory may hold. Default: 100,000. */
  readonly maxFiles?: number;
  /** How large an answer may be, in bytes. */
  readonly maxAnswerBytes?: number;
}

/** The options with what was left out; how much a host takes at once differs. */
export function withHostDefaults<T extends GitHostOptions>(
  options: T,
  limits: Required<Pick<GitHostOptions, 'concurrency' | 'maxAnswerBytes'>>,
): T & Required<GitHostOptions> {
  return { timeoutMs: 30_000, serveStaleForMs: null, maxFiles: 100_000, ...limits, ...options, knowledge: options.knowledge ?? createRecentKnowledge() };
}

/** A credential in the form in which hosts take it from git: a user name, of their choice, and the token as the password. */
export function basicAuthorization(user: string, token: string): string {
  return `Basic ${Buffer.from(`${user}:${token}`, 'utf8').toString('base64')}`;
}

/** The repository below the address of a host's pages, which has no slash at its end. */
export function hostedRemote(pages: string, repository: string, authorization: string | null): GitRemote {
  const path = repository.split('/').map(encodeURIComponent).join('/');
  return { url: `${pages}/${path}.git`, authorization };
}
