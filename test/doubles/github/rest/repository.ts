import { defaultBranch } from '../git.ts';
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
