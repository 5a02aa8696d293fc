import type { Octokit } from '@octokit/rest';
import { withHostDefaults, type GitHostOptions } from '../git-host-options.ts';

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
export interface GitHubOptions extends GitHostOptions {
  readonly token?: string;
  readonly app?: GitHubApp;
  /** A ready-made client. It authenticates, and neither retries nor waits by itself: that is done here. With it, nothing in `knowledge` is shared or found again. */
  readonly client?: GitHubClient;
  /**
   * The URL of the REST API: `https://api.github.com` (or the client's, where there is one), or `https://HOST/api/v3` of a
   * GitHub Enterprise Server.
   */
  readonly url?: string;
}

type Credential = 'token' | 'app' | 'client';
export type ResolvedOptions = Required<Omit<GitHubOptions, Credential>> & Pick<GitHubOptions, Credential>;

const publicApi = 'https://api.github.com';

/** Throws a `TypeError` where the options contradict each other. */
export function resolveOptions(options: GitHubOptions): ResolvedOptions {
  const credentials = [options.token, options.app, options.client].filter((credential) => credential !== undefined);
  if (credentials.length > 1) throw new TypeError('GitHub takes one of token, app and client');
  return {
    ...withHostDefaults(options, { concurrency: 4, maxAnswerBytes: 32 * 1024 * 1024 }),
    url: (options.url ?? options.client?.request.endpoint.DEFAULTS.baseUrl ?? publicApi).replace(/\/+$/u, ''),
  };
}
