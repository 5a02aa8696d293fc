import type { CheckResult } from '../../../ports/check-result.ts';
import type { GitProvider } from '../../../ports/git-provider.ts';
import { createTimeLimit } from '../../shared/timeout.ts';
import {
  basicAuthorization, cacheScope, createHostedProvider, type GitHostOptions, hostDefaults, hostedRemote, requireEncryption,
} from '../hosted-provider.ts';
import { infoOf } from './gitlab-responses.ts';
import { createGitLabApiFactory, type GitLabApi } from './gitlab-api.ts';
import { failureOf, failures, isContentMissing, providerName, ErrorResponse, rethrowForbidden } from './gitlab-failures.ts';
import { createGitLabListing, requireProjectName } from './gitlab-listing.ts';
import { openGitLabMergeRequest } from './gitlab-merge-requests.ts';
import { listGitLabBranches, searchGitLab } from './repositories-and-branches.ts';

export function createGitLabProvider(options: GitLabOptions): GitProvider {
  const resolved = resolveOptions(options);
  const { host, token, clock, timeoutMs, maxFiles } = resolved;
  const limit = createTimeLimit(clock, timeoutMs, failures);
  const apiFor = createGitLabApiFactory(resolved);

  return createHostedProvider(
    {
      name: providerName,
      family: 'gitlab',
      failures,
      hosts: [host.name],
      source: createGitLabListing(apiFor, maxFiles),
      scope: cacheScope(providerName, host.pagesUrl, token),
      async find(repository, signal) {
        requireProjectName(repository);
        return infoOf(await apiFor(signal).project(repository));
      },
      async remote(repository) {
        requireProjectName(repository);
        // Git does not accept the API's header.
        return hostedRemote(host.pagesUrl, repository, token === null ? null : basicAuthorization('oauth2', token));
      },
      async readBlob(repository, blobId, maxResponseBytes, signal) {
        requireProjectName(repository);
        try {
          return await apiFor(signal).blob(repository, blobId, maxResponseBytes);
        } catch (error) {
          if (isContentMissing(error)) return null;
          throw error;
        }
      },
      searchRepositories: (text, page, signal) => searchGitLab(apiFor(signal), text, token !== null, page),
      listBranches: (repository, page, signal) => listGitLabBranches(apiFor(signal), repository, page),
      async openPullRequest(repository, request, signal) {
        requireProjectName(repository);
        const api = apiFor(signal);
        return await openGitLabMergeRequest(api, await api.project(repository), request, token);
      },
      check: (signal) => check(apiFor(signal), resolved),
      failureOf: (error, repository) => (error instanceof ErrorResponse ? failureOf(error, repository) : error),
      permissions: 'It needs the scope read_api, or api to publish, of an account that is not blocked.',
    },
    limit,
    resolved,
  );
}

async function check(api: GitLabApi, { host: { name }, token }: ResolvedOptions): Promise<CheckResult> {
  try {
    return { ok: true, detail: `GitLab ${await api.version()} at ${name} answers, and accepts the token` };
  } catch (error) {
    if (!(error instanceof ErrorResponse) || error.apiMessage === null) throw error;
    // The version is for signed-in users only.
    if (error.status === 401 && token === null) {
      return { ok: true, detail: `${name} answers; without a token, only public projects are visible` };
    }
    return rethrowForbidden(error);
  }
}

/**
 * Without a token, only public projects are read. A token needs the scope `read_api`, and `api` to publish. GitLab versions whose commits
 * API does not know the parameter `follow` always follow renames: they date a moved file by the first commit of its first name.
 */
export interface GitLabOptions extends GitHostOptions {
  /** A personal, project or group access token. */
  readonly token?: string;
  /** The URL of the host's pages, with its path if it has one: `https://HOST/gitlab`. Default: `https://gitlab.com`. */
  readonly url?: string;
}

export interface HostUrl {
  /** `gitlab.example.com`, with the port if there is one. */
  readonly name: string;
  readonly origin: string;
  /** The API's path, without a slash at the end: `/gitlab/api/v4`. */
  readonly apiPath: string;
  /** The base URL of the projects, for git and for browsers, without a slash at the end. */
  readonly pagesUrl: string;
}

export type ResolvedOptions = Required<Omit<GitLabOptions, 'token' | 'url'>> & {
  readonly host: HostUrl;
  readonly token: string | null;
};

const publicHost = 'https://gitlab.com';
// The characters that a header allows. With others, the error of `fetch` would show the token.
const tokenForm = /^[\u0021-\u007e]+$/u;

/** Throws a `TypeError` if an option is malformed. */
function resolveOptions({ url = publicHost, token, ...options }: GitLabOptions): ResolvedOptions {
  if (token !== undefined && !tokenForm.test(token)) {
    throw new TypeError('The GitLab token is empty, or has a character that no token has');
  }
  const host = parseHostUrl(url);
  if (token !== undefined) requireEncryption(host.pagesUrl, options.httpHosts);
  return { ...hostDefaults(), concurrency: 8, maxResponseBytes: 16 * 2 ** 20, maxRequests: 3000, ...options, host, token: token ?? null };
}

/** Throws a `TypeError` that does not show the URL. */
function parseHostUrl(text: string): HostUrl {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new TypeError('The URL of GitLab is not of the form https://gitlab.example.com');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new TypeError('The URL of GitLab takes no user name, password, query or fragment');
  }
  const path = url.pathname.replace(/\/+$/u, '');
  return { name: url.host, origin: url.origin, apiPath: `${path}/api/v4`, pagesUrl: `${url.origin}${path}` };
}
