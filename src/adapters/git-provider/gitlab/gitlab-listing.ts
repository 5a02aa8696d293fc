import { parseRepositoryName } from '../../../domain/repository-name.ts';
import { itemsPerHostPage } from '../paging.ts';
import { type Head, type ListingSource, prefixOf, type TreeFile } from '../incremental-listing.ts';
import type { Commit, HeadCommit, Page, PageName } from './gitlab-responses.ts';
import type { GitLabApi, GitLabApiFactory, ProjectName } from './gitlab-api.ts';
import { failed, isContentMissing, notFound, ErrorResponse, tooLarge } from './gitlab-failures.ts';

/** Lists directories on GitLab, with requests for the head, for each page of the tree, and for the history of each file. */
export function createGitLabListing(apiFor: GitLabApiFactory, maxFiles: number): ListingSource {
  return {
    readHead: (repository, _, signal) => readHead(apiFor(signal), repository),
    async open({ repository, head: known, earlier, directoryOf }, signal) {
      const api = apiFor(signal);
      const head = known ?? (await readHead(api, repository));
      const { id: project, commit: sha } = head;
      const directory = directoryOf(head.name);
      const files = sha === null ? [] : await readTree(api, { project, sha, directory, maxFiles });
      const descends = async (within: AbortSignal): Promise<boolean> =>
        earlier !== null && sha !== null && (await isAncestor(apiFor(within), project, earlier, sha));
      return { head, directory, files, descends };
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
export function requireProjectName(repository: string): void {
  const parsed = parseRepositoryName(repository);
  if (!parsed.ok || parsed.segments.length < 2) throw notFound(repository);
}

/** Makes one request, or up to three if the repository may be empty. Requests by the head's `id` are not redirected. */
async function readHead(api: GitLabApi, repository: string): Promise<Head> {
  requireProjectName(repository);
  const head = await findCommit(api, repository, 'HEAD');
  const name = projectNameIn(head?.web_url);
  if (head?.project_id !== undefined && name !== null) return { id: head.project_id, name, commit: head.id, etag: null };
  const { id, path, default_branch: branch = null, empty_repo: empty = false } = await api.project(repository);
  const commit = head ?? (empty || branch === null ? null : await findCommit(api, id, branch));
  return { id, name: path, commit: commit?.id ?? null, etag: null };
}

/** Null if the project has no such commit. */
async function findCommit(api: GitLabApi, project: ProjectName, name: string): Promise<HeadCommit | null> {
  try {
    return await api.commit(project, name);
  } catch (error) {
    if (isContentMissing(error)) return null;
    throw error;
  }
}

/** Reads the project's name from the URL of a commit's page: `.../group/name/-/commit/SHA`. */
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

/** Returns the committer date of a path's first commit, in milliseconds. Null if there is none, as for a path that is not UTF-8. */
async function firstDate(api: GitLabApi, project: ProjectName, sha: string, path: string): Promise<number | null> {
  const read = (page: number): Promise<Page<Commit>> => api.history(project, { ref: sha, path, page });
  const first = await read(1);
  // An empty history is requested twice, so that a single mistake of the host does not drop the file.
  const newest = first.items.length === 0 ? await read(1) : first;
  const oldest = isLast(newest) ? newest : await lastPage(read, newest);
  return oldest.items.at(-1)?.committed_date ?? null;
}

function isLast({ items, next }: Page<Commit>): boolean {
  return next === null && items.length < itemsPerHostPage;
}

/** GitLab does not report the number of pages, so the number is doubled until a page is empty. Then a binary search follows. */
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

// The earlier commit is gone, the commits have no history in common, or the host can't find out.
const noAncestorStatuses: ReadonlySet<number> = new Set([400, 404, 500]);

/** False also if the host finds no common ancestor. A listing that reuses no dates is slower, but right. */
async function isAncestor(api: GitLabApi, project: ProjectName, earlier: string, commit: string): Promise<boolean> {
  try {
    return (await api.mergeBase(project, earlier, commit)).id === earlier;
  } catch (error) {
    if (error instanceof ErrorResponse && noAncestorStatuses.has(error.status)) return false;
    throw error;
  }
}

interface TreeRequest {
  readonly project: ProjectName;
  readonly sha: string;
  readonly directory: string;
  readonly maxFiles: number;
}

/** Returns the regular files below a directory; none if it does not exist. Makes one request per page. */
async function readTree(api: GitLabApi, request: TreeRequest): Promise<readonly TreeFile[]> {
  try {
    const tree = (await readPages(api, request, null)) ?? (await readPages(api, request, { page: 1 }));
    if (tree === null) throw failed('the pages of a directory lead back to earlier ones');
    return tree;
  } catch (error) {
    if (isContentMissing(error)) return [];
    throw error;
  }
}

/** Null if a page leads back to an earlier one: older versions name a page by the id of a blob, which several files may have. */
async function readPages(api: GitLabApi, request: TreeRequest, first: PageName | null): Promise<readonly TreeFile[] | null> {
  const { project, sha, directory, maxFiles } = request;
  const files = new Map<string, TreeFile>();
  const paths = new Set<string>();
  const names = new Set<string>();
  for (let name = first; ; ) {
    const page = await api.tree(project, sha, directory, name);
    const before = paths.size;
    for (const { path, type, mode, id } of page.items) {
      paths.add(path);
      const isRegular = type === 'blob' && /^100\d{3}$/u.test(mode);
      if (isRegular && path.startsWith(prefixOf(directory))) files.set(path, { path, blobId: id });
    }
    if (paths.size > maxFiles) throw tooLarge(`${maxFiles} files and folders`);
    if (page.next === null) return [...files.values()];
    const key = JSON.stringify(page.next);
    if (names.has(key) || paths.size === before) return null;
    names.add(key);
    name = page.next;
  }
}
