import { countsBetween, resolve } from '../git.ts';
import type { StoredPullRequest } from '../pull-requests.ts';
import type { HostedRepository } from '../../hosted-repositories.ts';
import { refusal, type DoubleResponse } from '../request.ts';
import { githubDescription, type Operation } from './openapi.ts';
import type { Route, RouteContext } from './routes.ts';

const listOperation: Operation = { path: '/repos/{owner}/{repo}/pulls', method: 'get' };
const createOperation: Operation = { path: '/repos/{owner}/{repo}/pulls', method: 'post' };
const updateOperation: Operation = { path: '/repos/{owner}/{repo}/pulls/{pull_number}', method: 'patch' };

const forbidden = refusal(403, 'Resource not accessible by personal access token');

/** Newest first. `head` is `owner:branch`, also for a fork with the same owner. */
export const listPulls: Route = {
  operation: listOperation,
  async answer({ repository, pullRequests, request: { query }, url }) {
    if (!pullRequests.allowed) return forbidden;
    const [state, head] = [query.get('state') ?? 'open', query.get('head')];
    const shown = pullRequests.of(repository.id).filter((each) => state === 'all' || each.state === state)
      .filter((each) => head === null || head === `${headPath(each, repository).split('/')[0]}:${each.head}`);
    const body = githubDescription().completeList(listOperation, shown.toReversed().map((each) => fieldsOf(each, repository, url)));
    return { status: 200, body };
  },
};

export const createPull: Route = {
  operation: createOperation,
  async answer(context) {
    const { repository, pullRequests, hasCredential } = context;
    if (!hasCredential) return refusal(401, 'Requires authentication');
    if (!pullRequests.allowed) return forbidden;
    const { title, body = null, head, base, draft = false } = bodyOf(createOperation, context);
    if (typeof head !== 'string' || typeof base !== 'string' || typeof title !== 'string') return invalid({ code: 'missing_field' });
    const problem = await problemWith(context, head, base);
    if (problem !== null) return problem;
    if (draft === true && !pullRequests.drafts) return { ...refusal(422, 'Draft pull requests are not supported in this repository.') };
    const made = pullRequests.add(repository.id, { title, body: textOrNull(body), head, base, draft: draft === true });
    return { status: 201, body: githubDescription().complete(createOperation, fieldsOf(made, repository, context.url)) };
  },
};

export const updatePull: Route = {
  operation: updateOperation,
  async answer(context) {
    const { repository, pullRequests, rest: [number], hasCredential } = context;
    if (!hasCredential) return refusal(401, 'Requires authentication');
    if (!pullRequests.allowed) return forbidden;
    const found = pullRequests.of(repository.id).find((each) => each.number === Number(number));
    if (found === undefined) return refusal(404, 'Not Found');
    const { title = found.title, body = found.body, base = found.base } = bodyOf(updateOperation, context);
    if ((await resolve(repository.gitDir, `refs/heads/${String(base)}`)) === null) return invalid({ field: 'base', code: 'invalid' });
    Object.assign(found, { title, body, base });
    return { status: 200, body: githubDescription().complete(updateOperation, fieldsOf(found, repository, context.url)) };
  },
};

async function problemWith(
  { repository: { id, path, gitDir }, pullRequests }: RouteContext, head: string, base: string,
): Promise<DoubleResponse | null> {
  const [headCommit, baseCommit] = await Promise.all([head, base].map((name) => resolve(gitDir, `refs/heads/${name}^{commit}`)));
  if (headCommit === null || headCommit === undefined) return invalid({ field: 'head', code: 'invalid' });
  if (baseCommit === null || baseCommit === undefined) return invalid({ field: 'base', code: 'invalid' });
  const counts = await countsBetween(gitDir, baseCommit, headCommit);
  if (counts === null || counts.ahead === 0) return invalid({ code: 'custom', message: `No commits between ${base} and ${head}` });
  const isSame = (each: StoredPullRequest): boolean =>
    each.state === 'open' && each.fork === null && each.head === head && each.base === base;
  if (!pullRequests.of(id).some(isSame)) return null;
  return invalid({ code: 'custom', message: `A pull request already exists for ${path.split('/')[0]}:${head}.` });
}

function invalid(error: object): DoubleResponse {
  const body = { message: 'Validation Failed', errors: [{ resource: 'PullRequest', ...error }], documentation_url: 'https://docs.github.com/rest' };
  return { status: 422, body };
}

/** Throws if GitHub does not describe such a body. */
function bodyOf(operation: Operation, { request }: RouteContext): Readonly<Record<string, unknown>> {
  return githubDescription().requestBody(operation, JSON.parse(request.body));
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function headPath({ fork }: StoredPullRequest, { path }: HostedRepository): string {
  return fork ?? path;
}

function fieldsOf(pull: StoredPullRequest, repository: HostedRepository, url: string): object {
  const { number, title, body, head, base, draft, state } = pull;
  const [full_name, owner] = [headPath(pull, repository), { login: headPath(pull, repository).split('/')[0] }];
  return {
    number, title, body, draft, state,
    html_url: `${new URL(url).origin}/${repository.path}/pull/${number}`,
    head: { ref: head, label: `${owner.login}:${head}`, repo: { full_name, name: full_name.split('/')[1], owner } },
    base: { ref: base, repo: { full_name: repository.path } },
  };
}

