import type { CheckResult } from '../../../ports/check-result.ts';
import type { GitProvider } from '../../../ports/git-provider.ts';
import { cacheScope, createHostedProvider, hostedRemote } from '../hosted-provider.ts';
import { createTimeLimit } from '../time-limit.ts';
import { createGitLabApi, type GitLabApi } from './gitlab-api.ts';
import { checkName, createGitLabListing } from './gitlab-listing.ts';
import { credentialHeaders, gitAuthorization, type GitLabOptions, type ResolvedOptions, resolveOptions } from './gitlab-options.ts';
import { failureOf, failures, isOfContent, providerName, Refusal, unauthorized } from './gitlab-error-responses.ts';

export function createGitLabProvider(options: GitLabOptions): GitProvider {
  const resolved = resolveOptions(options);
  const { host, credential, clock, timeoutMs, maxFiles } = resolved;
  const limit = createTimeLimit(clock, timeoutMs, failures);
  const apiFor = createGitLabApi(resolved);

  return createHostedProvider(
    {
      name: providerName,
      family: 'gitlab',
      failures,
      hosts: [host.name],
      source: createGitLabListing(apiFor, maxFiles),
      async scope() {
        const headers = await credentialHeaders(credential);
        return cacheScope(providerName, host.pagesUrl, Object.keys(headers).length === 0 ? null : headers);
      },
      async find(repository, signal) {
        checkName(repository);
        const { path_with_namespace: path, empty_repo: empty, default_branch: branch } = await apiFor(signal).project(repository);
        return { path, defaultBranch: empty === true ? null : (branch ?? null) };
      },
      async remote(repository) {
        checkName(repository);
        return hostedRemote(host.pagesUrl, repository, gitAuthorization(await credentialHeaders(credential)));
      },
      async readBlob(repository, blobId, maxAnswerBytes, signal) {
        checkName(repository);
        try {
          return await apiFor(signal).blob(repository, blobId, maxAnswerBytes);
        } catch (error) {
          if (isOfContent(error)) return null;
          throw error;
        }
      },
      check: (signal) => check(apiFor(signal), resolved),
      failureOf: (error, repository) => (error instanceof Refusal ? failureOf(error, repository) : error),
      permissions: 'It needs the scope read_api, of an account that is not blocked.',
    },
    limit,
    resolved,
  );
}

async function check(api: GitLabApi, { host: { name }, credential }: ResolvedOptions): Promise<CheckResult> {
  try {
    return { ok: true, detail: `GitLab ${await api.version()} at ${name} answers, and takes the token` };
  } catch (error) {
    if (!(error instanceof Refusal) || error.apiMessage === null) throw error;
    const hasToken = Object.keys(credential.authHeaders).length > 0;
    // The version is for signed-in users only.
    if (error.status === 401 && !hasToken) return { ok: true, detail: `${name} answers; without a token, public projects only are seen` };
    throw error.status === 403 ? unauthorized(error) : error;
  }
}
