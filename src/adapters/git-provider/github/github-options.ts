import type { Octokit } from '@octokit/rest';
import { type GitHostOptions, requirePrivateWay, withHostDefaults } from '../hosted-provider.ts';

/** What is used of an Octokit client. Without `auth`, git fetches without a credential. */
export interface GitHubClient {
  readonly request: Octokit['request'];
  readonly auth?: Octokit['auth'];
}

/** A GitHub App that is installed where the repositories are. */
export interface GitHubApp {
  readonly appId: number | string;
  /** PEM. */
  readonly privateKey: string;
  readonly installationId: number;
}

/**
 * One of `token`, `app` and `client`, or none. Without a credential public repositories are read, by REST alone: that
 * takes one request or two for each file, of which GitHub allows 60 an hour.
 */
export interface GitHubOptions extends GitHostOptions {
  readonly token?: string;
  readonly app?: GitHubApp;
  /**
   * A ready-made client. It authenticates, and neither retries nor waits: that is done here. Its credential is not known,
   * so nothing in the cache is shared with another provider, or found again.
   */
  readonly client?: GitHubClient;
  /**
   * The URL of the REST API: `https://HOST/api/v3` of a GitHub Enterprise Server. Default: the client's, or
   * `https://api.github.com`.
   */
  readonly url?: string;
}

type Credential = 'token' | 'app' | 'client';
export type ResolvedOptions = Required<Omit<GitHubOptions, Credential>> & Pick<GitHubOptions, Credential> & Endpoints;

interface Endpoints {
  /** The URL of GraphQL, or its path below that of the REST API. */
  readonly graphqlUrl: string;
  /** Where git fetches repositories from, and people browse them. It has no slash at the end. */
  readonly pagesUrl: string;
}

const publicApi = 'https://api.github.com';
const enterprisePath = /\/api\/v3$/u;

/** Throws a `TypeError` if the options contradict each other, or the credential could be read on the way. */
export function resolveOptions(options: GitHubOptions): ResolvedOptions {
  const credentials = [options.token, options.app, options.client].filter((credential) => credential !== undefined);
  if (credentials.length > 1) throw new TypeError('GitHub takes one of token, app and client');
  const url = (options.url ?? options.client?.request.endpoint.DEFAULTS.baseUrl ?? publicApi).replace(/\/+$/u, '');
  if (options.token !== undefined || options.app !== undefined) requirePrivateWay(url, options.httpHosts);
  return { ...withHostDefaults(options, { concurrency: 4, maxAnswerBytes: 32 * 2 ** 20, maxRequests: 300 }), url, ...endpointsOf(url) };
}

/**
 * A GitHub Enterprise Server has the REST API at `/api/v3` and GraphQL at `/api/graphql`, on the host that people browse.
 * Elsewhere the API has a host of its own, `api.` in front of the other.
 */
function endpointsOf(url: string): Endpoints {
  const { host, protocol } = new URL(url);
  return {
    graphqlUrl: enterprisePath.test(url) ? url.replace(enterprisePath, '/api/graphql') : '/graphql',
    pagesUrl: `${protocol}//${host.replace(/^api\./u, '')}`,
  };
}

export function hasCredential({ token, app, client }: ResolvedOptions): boolean {
  return token !== undefined || app !== undefined || client !== undefined;
}
