import { treeOf, typeOf, resolve } from '../git.ts';
import { refusal } from '../request.ts';
import { githubDescription, type Operation } from './openapi.ts';
import type { Route } from './routes.ts';

const operation: Operation = { path: '/repos/{owner}/{repo}/git/trees/{tree_sha}', method: 'get' };

/** A tree, and all below it where `recursive` is given; more than the limit is cut off, and says so. */
export const readTree: Route = {
  operation,
  async answer({ repository: { gitDir }, rest: [sha = ''], request: { query }, treeLimit }) {
    const oid = /^[0-9a-f]{40}$/u.test(sha) ? await resolve(gitDir, `${sha}^{tree}`) : null;
    if (oid === null || (await typeOf(gitDir, oid)) !== 'tree') return refusal(404, 'Not Found');
    const all = await entriesOf(gitDir, oid, '', query.has('recursive'));
    const truncated = query.has('recursive') && treeLimit !== null && all.length > treeLimit;
    const tree = truncated ? all.slice(0, treeLimit ?? 0) : all;
    return { status: 200, body: githubDescription().complete(operation, { sha: oid, truncated, tree }) };
  },
};

interface Entry {
  readonly path: string;
  readonly mode: string;
  readonly type: string;
  readonly sha: string;
}

async function entriesOf(gitDir: string, oid: string, prefix: string, recursive: boolean): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (const { name, mode, type, oid: sha } of await treeOf(gitDir, oid)) {
    const path = prefix + name.toString('utf8');
    entries.push({ path, mode, type, sha });
    if (recursive && type === 'tree') entries.push(...(await entriesOf(gitDir, sha, `${path}/`, true)));
  }
  return entries;
}
