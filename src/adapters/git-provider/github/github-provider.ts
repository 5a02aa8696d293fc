import type { CheckResult } from '../../../ports/check-result.ts';
import type { GitProvider } from '../../../ports/git-provider.ts';
import { createTimeLimit } from '../../shared/timeout.ts';
import {
  basicAuthorization, cacheScope, createHostedProvider, type GitHostOptions, hostDefaults, hostedRemote, requireEncryption,
} from '../hosted-provider.ts';
import { createAskGraphql, createGitHubApi, type GitHubApi } from './github-api.ts';
import { failures, providerName } from './github-failures.ts';
import { createGitHubListing, parseName, type RepositorySource } from './github-listing.ts';
import { openGitHubPullRequest } from './github-pull-requests.ts';
import { createGraphqlListing } from './graphql-listing.ts';
import { listGitHubBranches, searchGitHub } from './repositories-and-branches.ts';
import { createRestListing, createRestTrees } from './rest-listing.ts';

/** Serves the repositories of github.com or of a GitHub Enterprise Server. `find` and `listFiles` follow renames. */
export function createGitHubProvider(options: GitHubOptions): GitProvider {
  const resolved = resolveOptions(options);
  const { clock, timeoutMs, pagesUrl, url, token, app } = resolved;
  const limit = createTimeLimit(clock, timeoutMs, failures);
  const api = createGitHubApi(resolved, limit);
  const source = sourceOf(resolved, api);
  const scope = cacheScope(providerName, url, app ?? token ?? null);
  const host = new URL(pagesUrl).host;

  return createHostedProvider(
    {
      name: providerName,
      family: 'other',
      failures,
      hosts: [host],
      source: createGitHubListing(api, source),
      scope,
      find: (repository, signal) => source.find(repository, signal),
      async remote(repository, signal) {
        const { owner, repo } = parseName(repository);
        const token = await api.gitToken(signal);
        return hostedRemote(pagesUrl, `${owner}/${repo}`, token === null ? null : basicAuthorization('x-access-token', token));
      },
      async readBlob(repository, blobId, maxResponseBytes, signal) {
        const { status, body } = await api.send({
          route: 'GET /repos/{owner}/{repo}/git/blobs/{file_sha}',
          parameters: { ...parseName(repository), file_sha: blobId },
          headers: { accept: 'application/vnd.github.raw' },
          // 409: an empty repository. 422: an id with the length of the other hash.
          acceptedStatuses: [404, 409, 422], follow: true, maxResponseBytes,
        }, signal);
        if (status === 200) return body;
        // GitHub does not say if the blob or the repository is missing. `find` throws if it is the repository.
        await source.find(repository, signal);
        return null;
      },
      searchRepositories: (text, page, signal) => searchGitHub(api, text, page, signal),
      listBranches: (repository, page, signal) => listGitHubBranches(api, repository, page, signal),
      openPullRequest: async (repository, request, signal) =>
        await openGitHubPullRequest(api, await source.find(repository, signal), request, signal),
      check: (signal) => check(api, resolved, signal),
      failureOf: (error) => error,
      permissions: 'It needs to read the contents and metadata of the repositories; to publish, to write contents and pull requests.',
    },
    limit,
    resolved,
  );
}

function sourceOf(options: ResolvedOptions, api: GitHubApi): RepositorySource {
  const { url, graphqlUrl, maxFiles } = options;
  const trees = createRestTrees(api, maxFiles);
  if (!hasCredential(options)) return createRestListing(api, url, trees);
  return createGraphqlListing(createAskGraphql(api, graphqlUrl), trees, options);
}

/** This request does not count against the rate limit. */
async function check(api: GitHubApi, options: ResolvedOptions, signal: AbortSignal): Promise<CheckResult> {
  // A GitHub Enterprise Server without rate limits returns 404.
  const { headers } = await api.send({ route: 'GET /rate_limit', acceptedStatuses: [404] }, signal);
  const [remaining, limit] = [headers.get('x-ratelimit-remaining') ?? '', headers.get('x-ratelimit-limit') ?? ''];
  const isLimit = /^\d{1,9}$/u.test(remaining) && /^\d{1,9}$/u.test(limit);
  const left = isLimit ? `; ${remaining} of ${limit} requests an hour are left` : '';
  const access = hasCredential(options) ? '' : '; without a token it shows public repositories only, and few of them: configure one';
  return { ok: true, detail: `${new URL(options.url).host} answers${left}${access}` };
}

export interface GitHubApp {
  readonly appId: number | string;
  /** PEM. */
  readonly privateKey: string;
  readonly installationId: number;
}

/** Set at most one of `token` and `app`. Without them, REST reads public repositories, with 60 requests an hour. */
export interface GitHubOptions extends GitHostOptions {
  readonly token?: string;
  readonly app?: GitHubApp;
  /** The URL of the REST API: `https://HOST/api/v3`, for example. Default: `https://api.github.com`. */
  readonly url?: string;
}

type Credential = 'token' | 'app';
export type ResolvedOptions = Required<Omit<GitHubOptions, Credential>> & Pick<GitHubOptions, Credential> & Endpoints;

interface Endpoints {
  /** The URL of the GraphQL API, or its path below the REST API's URL. */
  readonly graphqlUrl: string;
  /** The base URL of the repositories, for git and for browsers, without a slash at the end. */
  readonly pagesUrl: string;
}

const publicApi = 'https://api.github.com';
const enterprisePath = /\/api\/v3$/u;

/** Throws a `TypeError` if the options contradict each other, or the credential could be read on the way. */
function resolveOptions(options: GitHubOptions): ResolvedOptions {
  if (options.token !== undefined && options.app !== undefined) throw new TypeError('GitHub takes one of token and app');
  const url = (options.url ?? publicApi).replace(/\/+$/u, '');
  if (hasCredential(options)) requireEncryption(url, options.httpHosts);
  return { ...hostDefaults(), concurrency: 4, maxResponseBytes: 32 * 2 ** 20, maxRequests: 300, ...options, url, ...endpointsOf(url) };
}

/** A GitHub Enterprise Server has both APIs on the host of its pages. Elsewhere the host of the APIs has the prefix `api.`. */
function endpointsOf(url: string): Endpoints {
  const { host, protocol } = new URL(url);
  return {
    graphqlUrl: enterprisePath.test(url) ? url.replace(enterprisePath, '/api/graphql') : '/graphql',
    pagesUrl: `${protocol}//${host.replace(/^api\./u, '')}`,
  };
}

function hasCredential({ token, app }: Pick<GitHubOptions, Credential>): boolean {
  return token !== undefined || app !== undefined;
}
