import { countsBetween, defaultBranch, historyOf, resolve } from '../git.ts';
import { refusal } from '../request.ts';
import { githubDescription, type Operation } from './openapi.ts';
import type { Route } from './routes.ts';

const historyOperation: Operation = { path: '/repos/{owner}/{repo}/commits', method: 'get' };
const compareOperation: Operation = { path: '/repos/{owner}/{repo}/compare/{basehead}', method: 'get' };

/** Pages of the commits that touch a path, with links to the others. */
export const listCommits: Route = {
  operation: historyOperation,
  async answer({ repository: { gitDir, id }, request: { query }, url }) {
    const head = await resolve(gitDir, `${query.get('sha') ?? 'HEAD'}^{commit}`);
    if (head === null) return refusal(query.has('sha') ? 404 : 409, 'Git Repository is empty.');
    const commits = await historyOf(gitDir, head, query.get('path'));
    const perPage = Number(query.get('per_page') ?? 30);
    const page = Number(query.get('page') ?? 1);
    const last = Math.max(1, Math.ceil(commits.length / perPage));
    const shown = commits.slice((page - 1) * perPage, page * perPage);
    const body = githubDescription().completeList(
      historyOperation,
      shown.map(({ oid, committedDate }) => ({ sha: oid, commit: { committer: { date: committedDate } } })),
    );
    const linkTo = (number: number, rel: string): string => {
      const search = new URLSearchParams(query);
      search.set('page', String(number));
      return `<${url}/repositories/${id}/commits?${search.toString()}>; rel="${rel}"`;
    };
    const links = page < last ? [linkTo(page + 1, 'next'), linkTo(last, 'last')] : last > 1 ? [linkTo(page - 1, 'prev'), linkTo(1, 'first')] : [];
    return { status: 200, headers: links.length === 0 ? {} : { link: links.join(', ') }, body };
  },
};

/** Only the id of the head, in the media type for it. The ETag is the id. */
export const readHead: Route = {
  operation: { path: '/repos/{owner}/{repo}/commits/{ref}', method: 'get' },
  async answer({ repository, rest: [ref], request: { headers } }) {
    if (ref !== 'HEAD') throw new Error('the double knows the commit HEAD only');
    if (!/^application\/vnd\.github(\.v3)?\.sha$/u.test(headers['accept'] ?? '')) throw new Error('the double tells the id of a commit only');
    const branch = await defaultBranch(repository.gitDir);
    if (branch === null) return refusal(409, 'Git Repository is empty.');
    const etag = `"${branch.oid}"`;
    const common = { 'content-type': 'application/vnd.github.sha; charset=utf-8', etag };
    if (headers['if-none-match'] === etag) return { status: 304, headers: common };
    return { status: 200, headers: common, body: branch.oid };
  },
};

/** Compares the histories of two commits. */
export const compare: Route = {
  operation: compareOperation,
  async answer({ repository: { gitDir }, rest: [basehead = ''] }) {
    const [base, head] = basehead.split('...');
    const counts = base === undefined || head === undefined ? null : await countsBetween(gitDir, base, head);
    if (counts === null) return refusal(404, 'Not Found');
    const fields = { status: statusOf(counts), ahead_by: counts.ahead, behind_by: counts.behind };
    return { status: 200, body: githubDescription().complete(compareOperation, fields) };
  },
};

export function statusOf({ ahead, behind }: { readonly ahead: number; readonly behind: number }): string {
  if (ahead > 0 && behind > 0) return 'diverged';
  if (ahead > 0) return 'ahead';
  return behind > 0 ? 'behind' : 'identical';
}
