import { historyOf, resolve } from '../git.ts';
import { refusal } from '../request.ts';
import { githubDescription, type Operation } from './openapi.ts';
import type { Route } from './routes.ts';

const operation: Operation = { path: '/repos/{owner}/{repo}/commits', method: 'get' };

/** Pages of the commits that touch a path, with links to the others. */
export const listCommits: Route = {
  operation,
  async answer({ repository: { gitDir, id }, request: { query }, url }) {
    const head = await resolve(gitDir, `${query.get('sha') ?? 'HEAD'}^{commit}`);
    if (head === null) return refusal(query.has('sha') ? 404 : 409, 'Git Repository is empty.');
    const commits = await historyOf(gitDir, head, query.get('path'));
    const perPage = Number(query.get('per_page') ?? 30);
    const page = Number(query.get('page') ?? 1);
    const last = Math.max(1, Math.ceil(commits.length / perPage));
    const shown = commits.slice((page - 1) * perPage, page * perPage);
    const body = githubDescription().completeList(
      operation,
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
