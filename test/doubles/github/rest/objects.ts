import { blobOf, resolve, treeOf, typeOf } from '../git.ts';
import { refusal } from '../request.ts';
import { githubDescription, type Operation } from './openapi.ts';
import type { Route } from './routes.ts';

const treeOperation: Operation = { path: '/repos/{owner}/{repo}/git/trees/{tree_sha}', method: 'get' };
const blobOperation: Operation = { path: '/repos/{owner}/{repo}/git/blobs/{file_sha}', method: 'get' };

/** A tree, with everything below it if `recursive` is set. It is truncated at the limit, and says so. */
export const readTree: Route = {
  operation: treeOperation,
  async answer({ repository: { gitDir }, rest: [sha = ''], request: { query }, treeLimit }) {
    const oid = /^[0-9a-f]{40}$/u.test(sha) ? await resolve(gitDir, `${sha}^{tree}`) : null;
    if (oid === null || (await typeOf(gitDir, oid)) !== 'tree') return refusal(404, 'Not Found');
    const all = await entriesOf(gitDir, oid, '', query.has('recursive'));
    const truncated = query.has('recursive') && treeLimit !== null && all.length > treeLimit;
    const tree = truncated ? all.slice(0, treeLimit ?? 0) : all;
    return { status: 200, body: githubDescription().complete(treeOperation, { sha: oid, truncated, tree }) };
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

/** The content of a file: bytes if the raw media type is requested, otherwise JSON. */
export const readBlob: Route = {
  operation: blobOperation,
  async answer({ repository: { gitDir }, rest: [sha = ''], request: { headers } }) {
    if ((await resolve(gitDir, 'HEAD')) === null) return refusal(409, 'Git Repository is empty.');
    if (!/^[0-9a-f]{40}$/u.test(sha)) return refusal(422, 'The sha parameter must be exactly 40 characters and contain only [0-9a-f].');
    const content = (await typeOf(gitDir, sha)) === 'blob' ? await blobOf(gitDir, sha) : null;
    if (content === null) return refusal(404, 'Not Found');
    const isRaw = /^application\/vnd\.github(\.v3)?\.raw(\+json)?$/u.test(headers['accept'] ?? '');
    if (isRaw) return { status: 200, headers: { 'content-type': 'application/vnd.github.raw; charset=utf-8' }, body: content };
    const fields = { sha, size: content.length, encoding: 'base64', content: content.toString('base64') };
    return { status: 200, body: githubDescription().complete(blobOperation, fields) };
  },
};

/** One level of a directory. */
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
