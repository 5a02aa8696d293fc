import { resolve, treeOf, typeOf } from '../git.ts';
import { refusal } from '../request.ts';
import type { Route } from './routes.ts';

/** One level of a directory, for programs that list it in the obvious way. */
export const listContents: Route = {
  operation: { path: '/repos/{owner}/{repo}/contents/{path}', method: 'get' },
  async answer({ repository: { gitDir }, rest }) {
    const oid = await resolve(gitDir, `HEAD:${rest.join('/')}`);
    if (oid === null || (await typeOf(gitDir, oid)) !== 'tree') return refusal(404, 'Not Found');
    const body = (await treeOf(gitDir, oid)).map(({ name, type, oid: sha }) => ({
      name: name.toString('utf8'),
      path: `${rest.join('/')}/${name.toString('utf8')}`,
      type: type === 'tree' ? 'dir' : 'file',
      sha,
    }));
    return { status: 200, body };
  },
};
