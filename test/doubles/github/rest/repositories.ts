import { branchesOf, defaultBranch } from '../git.ts';
import type { HostedRepositories } from '../../hosted-repositories.ts';
import { refusal, type DoubleRequest, type DoubleResponse } from '../request.ts';
import { githubDescription, type Operation } from './openapi.ts';
import type { Route } from './routes.ts';

const repositoryOperation: Operation = { path: '/repos/{owner}/{repo}', method: 'get' };
export const searchOperation: Operation = { path: '/search/repositories', method: 'get' };
const branchesOperation: Operation = { path: '/repos/{owner}/{repo}/branches', method: 'get' };

export const showRepository: Route = {
  operation: repositoryOperation,
  async answer({ repository: { id, path, gitDir, visibility, archived = false } }) {
    const name = path.slice(path.indexOf('/') + 1);
    const branch = (await defaultBranch(gitDir))?.name ?? 'main';
    const fields = { id, name, full_name: path, private: visibility === 'private', default_branch: branch, archived };
    return { status: 200, body: githubDescription().complete(repositoryOperation, fields) };
  },
};

/** Understands a name in quotes, `in:name`, `fork:true` and `user:`. The newest comes first. */
export function searchRepositories({ query }: DoubleRequest, repositories: HostedRepositories, hasCredential: boolean): DoubleResponse {
  const { name = '', user, rest } = termsOf(query.get('q') ?? '');
  if (rest.length > 0) throw new Error(`the double does not search for ${rest.join(' ')}`);
  const visible = repositories.all().filter(({ visibility }) => hasCredential || visibility === 'public');
  if (user !== undefined && !visible.some(({ path }) => path.startsWith(`${user}/`))) {
    const message = 'The listed users and repositories cannot be searched either because the resources do not exist or you do not have permission to view them.';
    return { status: 422, body: { message: 'Validation Failed', errors: [{ message, resource: 'Search', field: 'q', code: 'invalid' }] } };
  }
  const found = visible.filter(({ path }) => {
    const [owner = '', repo = ''] = path.toLowerCase().split('/');
    return repo.includes(name) && (user === undefined || owner === user);
  });
  const { from, to } = windowOf(query);
  if (to > 1000) return refusal(422, 'Only the first 1000 search results are available');
  const items = found.slice(from, to).map(({ id, path, visibility }) => ({ id, full_name: path, name: path.split('/')[1], private: visibility === 'private' }));
  return { status: 200, body: githubDescription().completeItems(searchOperation, { total_count: found.length, incomplete_results: false }, items) };
}

function termsOf(q: string): { readonly name?: string; readonly user?: string; readonly rest: readonly string[] } {
  const name = /"([^"]*)"/u.exec(q)?.[1];
  const words = q.replace(/"[^"]*"/u, '').split(/\s+/u).filter((word) => word !== '');
  const user = words.find((word) => word.startsWith('user:'))?.slice('user:'.length);
  return {
    ...(name !== undefined && { name: name.toLowerCase() }),
    ...(user !== undefined && { user: user.toLowerCase() }),
    rest: words.filter((word) => !word.startsWith('user:') && !['in:name', 'fork:true'].includes(word)),
  };
}

/** Sorted by name. */
export const listBranches: Route = {
  operation: branchesOperation,
  async answer({ repository: { gitDir, id }, request: { query }, url }) {
    const all = await branchesOf(gitDir);
    const { page, from, to } = windowOf(query);
    const body = githubDescription().completeList(branchesOperation, all.slice(from, to).map(({ name, oid }) => ({ name, commit: { sha: oid } })));
    const search = new URLSearchParams([...query].filter(([name]) => name !== 'page'));
    search.set('page', String(page + 1));
    const next = `<${url}/repositories/${id}/branches?${search.toString()}>; rel="next"`;
    return { status: 200, headers: to < all.length ? { link: next } : {}, body };
  },
};

function windowOf(query: URLSearchParams): { readonly page: number; readonly from: number; readonly to: number } {
  const [perPage, page] = [Number(query.get('per_page') ?? 30), Number(query.get('page') ?? 1)];
  return { page, from: (page - 1) * perPage, to: page * perPage };
}
