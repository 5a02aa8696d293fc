import type { CheckResult } from '../../../ports/check-result.ts';
import type { GitProvider } from '../../../ports/git-provider.ts';
import { createHostedProvider, createTimeLimit, hostedRemote } from '../hosted-provider.ts';
import { createGitLabApi, type GitLabApi } from './gitlab-api.ts';
import { failures, providerName } from './gitlab-failures.ts';
import { checkName, createGitLabListing } from './gitlab-listing.ts';
import {
  cacheScope, credentialHeaders, gitAuthorization, type GitLabOptions, type ResolvedOptions, resolveOptions,
} from './gitlab-options.ts';
import { failureOf, Refusal } from './gitlab-error-responses.ts';

/** Serves the projects of a GitLab, by its REST API. */
export function createGitLabProvider(options: GitLabOptions): GitProvider {
  const resolved = resolveOptions(options);
  const { host, credential, clock, timeoutMs, maxFiles } = resolved;
  const limit = createTimeLimit(clock, timeoutMs, failures);
  const apiFor = createGitLabApi(resolved);

  return createHostedProvider(
    {
      name: providerName,
      family: 'gitlab',
      hosts: [host.name],
      source: createGitLabListing(apiFor, maxFiles),
      scope: () => cacheScope(host, credential),
      async find(repository, signal) {
        checkName(repository);
        const { path_with_namespace: path, empty_repo: empty, default_branch: branch } = await apiFor(signal).project(repository);
        return { path, defaultBranch: empty === true ? null : (branch ?? null) };
      },
      async remote(repository) {
        checkName(repository);
        return hostedRemote(host.pagesUrl, repository, gitAuthorization(await credentialHeaders(credential)));
      },
      check: (signal) => check(apiFor(signal), resolved),
      failureOf: (error, repository) => (error instanceof Refusal ? failureOf(error, repository) : error),
      adviceFor: () => '',
    },
    limit,
    resolved,
  );
}

/** One request. */
async function check(api: GitLabApi, { host: { name }, credential }: ResolvedOptions): Promise<CheckResult> {
  try {
    return { ok: true, detail: `GitLab ${await api.version()} at ${name} answers, and takes the token` };
  } catch (error) {
    if (error instanceof Refusal) return explainRefusal(error, name, Object.keys(credential.authHeaders).length > 0);
    throw error;
  }
}

function explainRefusal({ status, apiMessage }: Refusal, name: string, hasToken: boolean): CheckResult {
  if (apiMessage === null) {
    return { ok: false, detail: `${name} does not answer as GitLab's API does (status ${status}); check the configured URL` };
  }
  // The version is for signed-in users only.
  if (status === 401 && !hasToken) return { ok: true, detail: `${name} answers; without a token, public projects only are seen` };
  if (status === 401) return { ok: false, detail: `${name} refuses the token; make a new one with the scope read_api` };
  if (status === 403) {
    const advice = 'give it the scope read_api, and see that its account is not blocked';
    return { ok: false, detail: `${name} does not let the token in; ${advice}` };
  }
  return { ok: false, detail: `${name} returned status ${status}; try again later` };
}
