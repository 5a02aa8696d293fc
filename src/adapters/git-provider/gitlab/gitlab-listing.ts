import { parseRepositoryName } from '../../../domain/repository-name.ts';
import type { Head, ListingSource } from '../incremental-listing.ts';
import { type ApiFor, type Commit, type GitLabApi, type HeadCommit, type Page, pageSize, type ProjectName } from './gitlab-api.ts';
import { readSince } from './gitlab-directory.ts';
import { failed, isOfContent, notFound } from './gitlab-error-responses.ts';

/** Lists directories of GitLab: the head, the pages of the tree, and a request for each file. */
export function createGitLabListing(apiFor: ApiFor, maxFiles: number): ListingSource {
  return {
    readHead: (repository, _, signal) => readHead(apiFor(signal), repository),
    async open({ repository, head: known, earlier, directoryOf, cachedFiles }, signal) {
      const api = apiFor(signal);
      const head = known ?? (await readHead(api, repository));
      const { id: project, commit: sha } = head;
      const directory = directoryOf(head.name);
      if (sha === null) return { head, directory, files: [] };
      const before = earlier === null ? null : await cachedFiles(earlier, directory);
      const snapshot = earlier === null || before === null ? null : { sha: earlier, files: before };
      return { head, directory, files: await readSince(api, { project, sha, directory, maxFiles }, snapshot) };
    },
    async addDates({ id: project }, commit, paths, dates, signal) {
      const api = apiFor(signal);
      const requests = paths.map(async (path) => {
        const date = await firstDate(api, project, commit, path);
        if (date !== null) dates.set(path, date);
      });
      await Promise.all(requests);
    },
  };
}

/** Throws `repository_not_found` if no project can have the name. A project is always in a group or a user's space. */
export function checkName(repository: string): void {
  const parsed = parseRepositoryName(repository);
  if (!parsed.ok || parsed.segments.length < 2) throw notFound(repository);
}

/** One request; up to three for a repository that may be empty. Requests by the head's `id` are not redirected any more. */
async function readHead(api: GitLabApi, repository: string): Promise<Head> {
  checkName(repository);
  try {
    return await headOf(api, repository, await api.commit(repository, 'HEAD'));
  } catch (error) {
    if (!isOfContent(error)) throw error;
  }
  const { id, path, default_branch: branch, empty_repo: empty = false } = await api.project(repository);
  if (empty || branch === null || branch === undefined) return { id, name: path, commit: null, etag: null };
  return { id, name: path, commit: await branchHead(api, id, branch), etag: null };
}

async function branchHead(api: GitLabApi, project: number, branch: string): Promise<string | null> {
  try {
    return (await api.commit(project, branch)).id;
  } catch (error) {
    if (isOfContent(error)) return null;
    throw error;
  }
}

async function headOf(api: GitLabApi, repository: string, commit: HeadCommit): Promise<Head> {
  const name = projectNameIn(commit.web_url);
  if (commit.project_id !== undefined && name !== null) {
    return { id: commit.project_id, name, commit: commit.id, etag: null };
  }
  const { id, path } = await api.project(repository);
  return { id, name: path, commit: commit.id, etag: null };
}

/** The page of a commit is below that of its project: `.../group/name/-/commit/SHA`. */
function projectNameIn(url: string | undefined): string | null {
  const segment = /\/([^/?#]+)\/-\/commit\/[0-9a-f]+$/u.exec(url ?? '')?.[1];
  if (segment === undefined) return null;
  try {
    return decodeURIComponent(segment);
  } catch {
    throw failed('the name of a project is not of the documented form');
  }
}

const maxPage = 2 ** 20;

/**
 * The committer date of the first commit that touches a path, in ms. One request, unless the path has so many commits
 * that they fill a page. Null if the host knows none, as for a path that is not UTF-8, which it lists by another name.
 */
async function firstDate(api: GitLabApi, project: ProjectName, sha: string, path: string): Promise<number | null> {
  const read = (page: number): Promise<Page<Commit>> => api.history(project, { ref: sha, path, page });
  const first = await read(1);
  // An empty history is asked for twice: a file must not be left out because of a mistake that the host makes once.
  const newest = first.items.length === 0 ? await read(1) : first;
  const oldest = isLast(newest) ? newest : await lastPage(read, newest);
  return oldest.items.at(-1)?.committed_date ?? null;
}

function isLast({ items, next }: Page<Commit>): boolean {
  return next === null && items.length < pageSize;
}

/** GitLab does not say how many pages there are, so the number is doubled until a page is empty, and then the gap is halved. */
async function lastPage(read: (page: number) => Promise<Page<Commit>>, first: Page<Commit>): Promise<Page<Commit>> {
  let [found, at, beyond] = [first, 1, Number.POSITIVE_INFINITY];
  while (beyond - at > 1) {
    const middle = beyond === Number.POSITIVE_INFINITY ? at * 2 : Math.floor((at + beyond) / 2);
    if (middle > maxPage) throw failed('the history of a file has no end');
    const page = await read(middle);
    if (page.items.length === 0) {
      beyond = middle;
    } else {
      [found, at] = [page, middle];
      if (isLast(page)) return found;
    }
  }
  return found;
}
