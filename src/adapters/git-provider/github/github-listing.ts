import { z } from 'zod';
import { parseRepositoryName } from '../../../domain/repository-name.ts';
import type { RepositoryInfo } from '../../../ports/git-provider.ts';
import { Oid } from '../response-fields.ts';
import type { Head, ListingSource, OpenedTree, OpenRequest } from '../incremental-listing.ts';
import type { GitHubApi } from './github-api.ts';
import { failed, notFound, parse } from './github-failures.ts';

/** `owner/name` */
export const fullName = z.string().regex(/^[^/]+\/[^/]+$/u);

/** The text of an answer to `commits/HEAD`. */
const HeadText = z.string().trim().pipe(Oid);

export interface RepositoryName {
  readonly owner: string;
  readonly repo: string;
}

/** Throws `repository_not_found` if no repository can have the name. */
export function parseName(repository: string): RepositoryName {
  const parsed = parseRepositoryName(repository);
  const [owner, repo, ...deeper] = parsed.ok ? parsed.segments : [];
  if (owner === undefined || repo === undefined || deeper.length > 0) throw notFound(repository);
  return { owner, repo };
}

/** Reads repositories from GitHub: by GraphQL with a credential, by REST without. */
export interface RepositorySource {
  find(repository: string, signal: AbortSignal): Promise<RepositoryInfo>;
  /** The `id` of the head is GitHub's current `owner/name`. */
  open(request: OpenRequest, signal: AbortSignal): Promise<OpenedTree>;
  /** Adds the dates of the paths' first commits, in milliseconds, of paths with a history. `repository` is the actual `owner/name`. */
  addDates(repository: string, commit: string, paths: readonly string[], dates: Map<string, number>, signal: AbortSignal): Promise<void>;
}

type HeadCommit = Pick<Head, 'commit' | 'etag'>;

// GitHub's statuses for a renamed repository, or one without a default branch.
const unclearStatuses: readonly number[] = [301, 302, 307, 308, 422];

/** Returns the head. Null if GitHub's response does not name it. Costs no rate limit if `last` is still current. */
export async function readHead(
  api: GitHubApi, repository: string, last: HeadCommit | null, signal: AbortSignal,
): Promise<HeadCommit | null> {
  // If no tag is cached, uses the commit id: GitHub documents it as the tag of this response.
  const etag = typeof last?.commit === 'string' ? (last.etag ?? `"${last.commit}"`) : null;
  const { status, headers, text } = await api.send(
    {
      route: 'GET /repos/{owner}/{repo}/commits/{ref}',
      parameters: { ...parseName(repository), ref: 'HEAD' },
      headers: { accept: 'application/vnd.github.sha', ...(etag === null ? {} : { 'if-none-match': etag }) },
      acceptedStatuses: [304, 404, 409, ...unclearStatuses],
    },
    signal,
  );
  if (status === 404) throw notFound(repository);
  if (status === 409) return { commit: null, etag: null };
  if (unclearStatuses.includes(status)) return null;
  if (status !== 304) return { commit: parse(HeadText, text, 'the head'), etag: headers.get('etag') };
  if (last === null || etag === null) throw failed('it answered "not modified" to a request without a condition');
  return last;
}

/** Lists directories on GitHub. Takes one conditional request if nothing has changed. */
export function createGitHubListing(api: GitHubApi, source: RepositorySource): ListingSource {
  return {
    async readHead(repository, last, signal) {
      // A repository that was renamed can be renamed again without a new head.
      if (last === null || repository.toLowerCase() !== String(last.id).toLowerCase()) return null;
      const head = await readHead(api, repository, last, signal);
      return head !== null && (head.commit === null || head.commit === last.commit) ? { ...last, ...head } : null;
    },
    open: (request, signal) => source.open(request, signal),
    async addDates({ id }, commit, paths, dates, signal) {
      await source.addDates(String(id), commit, paths, dates, signal);
      // The host replaces bytes that are not UTF-8 in a path, so the history of such a path can't be requested.
      if (paths.some((path) => !dates.has(path) && !path.includes('\u{fffd}'))) throw failed('it knows no history of a file that it lists');
    },
  };
}
