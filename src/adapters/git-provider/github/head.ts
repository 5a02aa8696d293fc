import { failed, notFound } from './failures.ts';
import { parseName } from './name.ts';
import { HeadText } from './schema.ts';
import type { Transport } from './transport.ts';
import { parseValue } from './parse.ts';

/** What the host says of a repository's head. */
export type HeadAnswer =
  | { readonly kind: 'same' }
  | { readonly kind: 'commit'; readonly oid: string; readonly etag: string | null }
  | { readonly kind: 'empty' }
  /** The repository has another name, or no default branch: another kind of question will tell. */
  | { readonly kind: 'unclear' };

const unclear: readonly number[] = [301, 302, 307, 308, 422];

/** Asks for the head of the default branch. With an entity tag it costs nothing of the limit while nothing has changed. */
export async function readHead(
  transport: Transport,
  repository: string,
  etag: string | null,
  signal: AbortSignal,
): Promise<HeadAnswer> {
  const { owner, name } = parseName(repository);
  const { status, headers, text } = await transport.send(
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
  if (status !== 304) return { kind: 'commit', oid: parseValue(HeadText, text, 'the head'), etag: headers['etag'] ?? null };
  if (etag === null) throw failed('it says that nothing has changed, which was not the question');
  return { kind: 'same' };
}

/** The documented entity tag of an answer that holds nothing but a commit's id. */
export function etagOf(oid: string): string {
  return `"${oid}"`;
}
