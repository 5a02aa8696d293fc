import { blobOf, resolve, typeOf } from '../git.ts';
import { refusal } from '../request.ts';
import { githubDescription, type Operation } from './openapi.ts';
import type { Route } from './routes.ts';

const operation: Operation = { path: '/repos/{owner}/{repo}/git/blobs/{file_sha}', method: 'get' };

/** The content of a file: the bytes in the media type for that, otherwise JSON. */
export const readBlob: Route = {
  operation,
  async answer({ repository: { gitDir }, rest: [sha = ''], request: { headers } }) {
    if ((await resolve(gitDir, 'HEAD')) === null) return refusal(409, 'Git Repository is empty.');
    if (!/^[0-9a-f]{40}$/u.test(sha)) return refusal(422, 'The sha parameter must be exactly 40 characters and contain only [0-9a-f].');
    const content = (await typeOf(gitDir, sha)) === 'blob' ? await blobOf(gitDir, sha) : null;
    if (content === null) return refusal(404, 'Not Found');
    const isRaw = /^application\/vnd\.github(\.v3)?\.raw(\+json)?$/u.test(headers['accept'] ?? '');
    if (isRaw) return { status: 200, headers: { 'content-type': 'application/vnd.github.raw; charset=utf-8' }, body: content };
    const fields = { sha, size: content.length, encoding: 'base64', content: content.toString('base64') };
    return { status: 200, body: githubDescription().complete(operation, fields) };
  },
};
