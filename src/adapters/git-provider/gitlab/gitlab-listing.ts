import { parseRepositoryName } from '../../../domain/repository-name.ts';
import { itemsPerHostPage } from '../paging.ts';
import { type CachedFile, type Head, type ListingSource, prefixOf, type TreeFile } from '../incremental-listing.ts';
import type { Commit, HeadCommit, Page, PageName } from './gitlab-responses.ts';
import type { ApiFor, GitLabApi, HistoryQuery, ProjectName } from './gitlab-api.ts';
import { failed, isContentMissing, isDirectoryMissing, notFound, ErrorResponse, tooLarge } from './gitlab-failures.ts';

/** Lists directories on GitLab, with requests for the head, for each page of the tree, and for the history of each file. */
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

interface Snapshot {
  readonly sha: string;
  readonly files: readonly CachedFile[];
}

/**
 * Reads a directory at a commit, and reuses the dates of an earlier commit that the host would still report. At a merge, the host's history
 * of a path follows only the first parent that has the path as it is after the merge. It shows every other commit that changes the path. So
 * along the first parents a path keeps its history, unless a merge changes it.
 */
async function readSince(api: GitLabApi, request: TreeRequest, earlier: Snapshot | null): Promise<readonly CachedFile[]> {
  const readAll = async (): Promise<CachedFile[]> => withDates(await readTree(api, request), new Map());
  const dates = new Map(earlier?.files.flatMap(({ path, createdAt }) => (createdAt === null ? [] : [[path, createdAt]])));
  if (earlier === null || dates.size === 0) return await readAll();
  // At most as many requests as there are dates to reuse.
  const maxPages = Math.min(dates.size, 10);
  const trunk = await readCommits(api, request, earlier.sha, {}, maxPages);
  if (trunk === null || !isFirstParentChain(trunk, earlier.sha, request.sha)) return await readAll();
  if (!trunk.some(isMerge)) return withDates(await readTree(api, request), dates);

  const query = request.directory === '' ? {} : { path: request.directory };
  const changes = await readCommits(api, request, earlier.sha, query, maxPages);
  if (changes?.length === 0) return earlier.files;
  // The changes of a merge are known only if no other commit has changed the directory.
  if (changes === null || (changes.length > 1 && changes.some(isMerge))) return await readAll();
  const tree = await readTree(api, request);
  if (changes.some(isMerge)) for (const file of earlier.files) if (isChanged(file, tree)) dates.delete(file.path);
  return withDates(tree, dates);
}

// The statuses of different GitLab versions if a commit of the range is gone.
const unknownCommitStatuses: ReadonlySet<number> = new Set([400, 404, 500]);

/** Returns the first-parent commits since an earlier commit, newest first. Null if there are too many, or the earlier one is gone. */
async function readCommits(
  api: GitLabApi,
  { project, sha }: TreeRequest,
  earlier: string,
  query: Pick<HistoryQuery, 'path'>,
  maxPages: number,
): Promise<readonly Commit[] | null> {
  const commits: Commit[] = [];
  try {
    for (let page = 1; page <= maxPages; page += 1) {
      const { items, next } = await api.history(project, { ref: `${earlier}..${sha}`, firstParent: true, page, ...query });
      commits.push(...items);
      if (next === null) return commits;
    }
  } catch (error) {
    if (!(error instanceof ErrorResponse) || !unknownCommitStatuses.has(error.status)) throw error;
  }
  return null;
}

/** Returns true if the commits lead back to the earlier one. They do not if history was rewritten. */
function isFirstParentChain(commits: readonly Commit[], earlier: string, sha: string): boolean {
  let expected: string | undefined = sha;
  for (const { id, parent_ids: parents } of commits) {
    if (id !== expected) return false;
    expected = parents[0];
  }
  return commits.length > 0 && expected === earlier;
}

function isMerge({ parent_ids: parents }: Commit): boolean {
  return parents.length > 1;
}

function withDates(tree: Tree, dates: ReadonlyMap<string, number>): CachedFile[] {
  return [...tree.values()].map((file) => ({ ...file, createdAt: dates.get(file.path) ?? null }));
}

function isChanged({ path, blobId, mode }: TreeFile, tree: Tree): boolean {
  const now = tree.get(path);
  return now?.blobId !== blobId || now.mode !== mode;
}

/** The regular files below a directory, by their paths. */
type Tree = ReadonlyMap<string, TreeFile>;

interface TreeRequest {
  readonly project: ProjectName;
  readonly sha: string;
  readonly directory: string;
  readonly maxFiles: number;
}

/** Makes one request per page. Returns an empty map if the directory does not exist. */
async function readTree(api: GitLabApi, request: TreeRequest): Promise<Tree> {
  try {
    const tree = (await readPages(api, request, null)) ?? (await readPages(api, request, { page: 1 }));
    if (tree === null) throw failed('the pages of a directory lead back to earlier ones');
    return tree;
  } catch (error) {
    if (isDirectoryMissing(error)) return new Map();
    throw error;
  }
}

/** Null if a page leads back to an earlier one: older versions name a page by the id of a blob, which several files may have. */
async function readPages(api: GitLabApi, request: TreeRequest, first: PageName | null): Promise<Tree | null> {
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
      if (isRegular && path.startsWith(prefixOf(directory))) files.set(path, { path, blobId: id, mode });
    }
    if (paths.size > maxFiles) throw tooLarge(`${maxFiles} files and folders`);
    if (page.next === null) return files;
    const key = JSON.stringify(page.next);
    if (names.has(key) || paths.size === before) return null;
    names.add(key);
    name = page.next;
  }
}
