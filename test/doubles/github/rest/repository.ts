import { defaultBranch } from '../git.ts';
import { refusal } from '../request.ts';
import { githubDescription, type Operation } from './openapi.ts';
import type { Route } from './routes.ts';

const operation: Operation = { path: '/repos/{owner}/{repo}', method: 'get' };

export const showRepository: Route = {
  operation,
  async answer({ repository: { id, path, gitDir, isPrivate } }) {
    const name = path.slice(path.indexOf('/') + 1);
    const branch = (await defaultBranch(gitDir))?.name ?? 'main';
    const fields = { id, name, full_name: path, private: isPrivate, default_branch: branch };
    return { status: 200, body: githubDescription().complete(operation, fields) };
  },
};

/** The head's id alone, in the media type for that, whose entity tag is the id. */
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
