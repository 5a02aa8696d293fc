import { z } from 'zod';
import type { PullRequest } from '../../../domain/change.ts';
import type { NewPullRequest, RepositoryInfo } from '../../../ports/git-provider.ts';
import { hostMessage } from '../../shared/git-host-message.ts';
import { parseJson } from '../../shared/json.ts';
import { type HttpResponse } from '../retrying-http-client.ts';
import { createOrUpdatePullRequest, type ExistingPullRequest } from '../pull-requests.ts';
import type { GitHubApi } from './github-api.ts';
import { failures, parseResponse } from './github-failures.ts';
import { parseName } from './github-listing.ts';

const PullRequestResponse = z.object({
  number: z.int().positive(),
  html_url: z.url({ protocol: /^https?$/u }),
  base: z.object({ ref: z.string() }),
  head: z.object({ ref: z.string(), repo: z.object({ full_name: z.string() }).nullable() }),
});
type PullRequestResponse = z.infer<typeof PullRequestResponse>;

const refusals = [
  [/no commits between/iu, 'nothing_to_merge'],
  [/draft pull requests are not supported/iu, 'drafts_unsupported'],
] as const;

/** Lists the open pull requests, then creates or updates one. These are two requests, after the caller's request for the repository. */
export async function openGitHubPullRequest(
  api: GitHubApi, repository: RepositoryInfo, request: NewPullRequest, signal: AbortSignal,
): Promise<PullRequest> {
  const { path } = repository;
  const { branch, title, body, draft } = request;
  const name = parseName(path);

  /** Throws if the host refuses. `returnsExisting`: also returns the 422 that says that the pull request exists already. */
  async function send(
    route: string, parameters: Readonly<Record<string, unknown>>, { returnsExisting = false } = {},
  ): Promise<HttpResponse> {
    const response = await api.send({ route, parameters: { ...name, ...parameters }, acceptedStatuses: [403, 404, 422] }, signal);
    const { status, text } = response;
    const cause = new Error(`status ${status}`);
    // The repository was just found, so a 404 is about the pull requests too.
    if (status === 403 || status === 404) throw failures.pullRequestRefused(path, branch, { code: 'pull_request_forbidden' }, cause);
    if (status !== 422 || (returnsExisting && /already exists/iu.test(text))) return response;
    const code = refusals.find(([pattern]) => pattern.test(text))?.[1];
    if (code !== undefined) throw failures.pullRequestRefused(path, branch, { code }, cause);
    const message = hostMessage(messagesIn(text), [await api.gitToken(signal) ?? '']);
    throw failures.pullRequestRefused(path, branch, { code: 'host_refused', message }, cause);
  }

  return await createOrUpdatePullRequest(
    {
      async listExisting() {
        const query = { head: `${name.owner}:${branch}`, state: 'open', per_page: 100 };
        const { text } = await send('GET /repos/{owner}/{repo}/pulls', query);
        const pullRequests = parseResponse(z.array(PullRequestResponse), text, 'the pull requests');
        // The answer may include pull requests from a fork of the same owner.
        return pullRequests.filter(({ head }) => head.ref === branch && head.repo?.full_name === path).map(toExistingPullRequest);
      },
      async create(base) {
        const parameters = { head: branch, base, title, body, draft };
        const response = await send('POST /repos/{owner}/{repo}/pulls', parameters, { returnsExisting: true });
        return response.status === 422 ? null : parsePullRequest(response);
      },
      update: async ({ number }, base) =>
        parsePullRequest(await send('PATCH /repos/{owner}/{repo}/pulls/{pull_number}', {
          pull_number: number, title, body, ...(base !== null && { base }),
        })),
    },
    repository,
    request,
    failures,
  );
}

/** As on GitHub's page about troubleshooting its REST API. An error without a message has the name of the field that it is about. */
const Detail = z
  .object({ message: z.string().optional(), field: z.string().optional(), code: z.string().optional() })
  .transform(({ message, field = '', code = '' }) => message ?? `${field} ${code}`);
const Refusal = z.object({ message: z.string(), errors: z.array(z.union([z.string(), Detail])).optional() });

function messagesIn(text: string): string {
  const { message = '', errors = [] } = parseJson(Refusal, text) ?? {};
  return [message, ...errors].join(': ');
}

function parsePullRequest({ text }: HttpResponse): PullRequest {
  return toExistingPullRequest(parseResponse(PullRequestResponse, text, 'a pull request'));
}

function toExistingPullRequest({ number, html_url: url, base }: PullRequestResponse): ExistingPullRequest {
  return { number, url, base: base.ref };
}
