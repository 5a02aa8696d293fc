import type { GitHubApi } from './github-api.ts';
import { failed, notFound, parseValue, reasons } from './github-failures.ts';
import { HeadText } from './github-schemas.ts';
import { parseName } from './repository-source.ts';

/** The head of the default branch, as the host reports it. */
export type HeadCommit =
  | { readonly kind: 'same' }
  | { readonly kind: 'commit'; readonly oid: string; readonly etag: string | null }
  | { readonly kind: 'empty' }
  /** The repository has another name, or no default branch: this request does not say which. */
  | { readonly kind: 'unclear' };

const unclear: readonly number[] = [301, 302, 307, 308, 422];

/** Reads the head. With an entity tag the request does not count against the rate limit while nothing has changed. */
export async function readHead(api: GitHubApi, repository: string, etag: string | null, signal: AbortSignal): Promise<HeadCommit> {
  const { owner, name } = parseName(repository);
  const { status, headers, text } = await api.send(
    {
      route: 'GET /repos/{owner}/{repo}/commits/{ref}',
      parameters: { owner, repo: name, ref: 'HEAD' },
      headers: { accept: 'application/vnd.github.sha', ...(etag === null ? {} : { 'if-none-match': etag }) },
      expects: [304, 404, 409, ...unclear],
    },
    signal,
  );
  if (status === 404) throw notFound(repository);
  if (status === 409) return { kind: 'empty' };
  if (unclear.includes(status)) return { kind: 'unclear' };
  if (status !== 304) return { kind: 'commit', oid: parseValue(HeadText, text, 'the head'), etag: headers.get('etag') };
  if (etag === null) throw failed(reasons.notModified);
  return { kind: 'same' };
}
