import type { Octokit } from '@octokit/rest';
import type { Clock } from '../../ports/clock.ts';
import type { KnowledgeStore } from '../../ports/knowledge-store.ts';
import { createRecentKnowledge } from '../toolkit/recent-knowledge.ts';

/** What is used of an Octokit client. Without `auth`, git fetches without a credential. */
export type GitHubClient = Pick<Octokit, 'request'> & Partial<Pick<Octokit, 'auth'>>;

/** A GitHub App that is installed where the repositories are. */
export interface GitHubApp {
  readonly appId: number | string;
  /** PEM. */
  readonly privateKey: string;
  readonly installationId: number;
}

/**
 * One of `token`, `app` and `client`, or none: then public repositories are read without a credential, by REST alone, at
 * the price of one request or two for each file, of which GitHub allows 60 an hour.
 */
export interface GitHubOptions {
  readonly token?: string;
  readonly app?: GitHubApp;
  /** A ready-made client. It authenticates, and neither retries nor waits by itself: that is done here. */
  readonly client?: GitHubClient;
  /**
   * The URL of the REST API: `https://api.github.com` (or the client's, where there is one), or `https://HOST/api/v3` of a
   * GitHub Enterprise Server.
   */
  readonly url?: string;
  readonly clock: Clock;
  /** Limit of one listing, all its requests, retries and waits included, in milliseconds. */
  readonly timeoutMs?: number;
  /** How many requests are under way at the same time. */
  readonly concurrency?: number;
  /** Where what was learnt is kept; in memory, unless it is given. With a `client`, nothing in it is shared or found again. */
  readonly knowledge?: KnowledgeStore;
  /**
   * While GitHub can't be reached, answers with a time-out or fails with a server error, a listing that it confirmed at
   * most so many milliseconds ago is served instead, with its `confirmedAt`. Null: a failure is a failure.
   */
  readonly serveStaleForMs?: number | null;
  /** How many files a directory may hold. */
  readonly maxFiles?: number;
  /** How large an answer may be, in bytes. */
  readonly maxAnswerBytes?: number;
}

type Credential = 'token' | 'app' | 'client';
export type ResolvedOptions = Required<Omit<GitHubOptions, Credential>> & Pick<GitHubOptions, Credential>;

const publicApi = 'https://api.github.com';

/** Throws a `TypeError` where the options contradict each other. */
export function resolveOptions(options: GitHubOptions): ResolvedOptions {
  const credentials = [options.token, options.app, options.client].filter((credential) => credential !== undefined);
  if (credentials.length > 1) throw new TypeError('GitHub takes one of token, app and client');
  return {
    timeoutMs: 30_000,
    concurrency: 4,
    serveStaleForMs: null,
    maxFiles: 100_000,
    maxAnswerBytes: 32 * 1024 * 1024,
    ...options,
    knowledge: options.knowledge ?? createRecentKnowledge(),
    url: (options.url ?? options.client?.request.endpoint.DEFAULTS.baseUrl ?? publicApi).replace(/\/+$/u, ''),
  };
}
