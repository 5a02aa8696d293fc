import { type CachedFile, prefixOf, type TreeFile } from '../incremental-listing.ts';
import type { Commit, GitLabApi, HistoryQuery, PageName, ProjectName } from './gitlab-api.ts';
import { failed, isOfDirectory, Refusal, tooLarge } from './gitlab-error-responses.ts';

/** A directory at an earlier commit. */
interface Snapshot {
  readonly sha: string;
  readonly files: readonly CachedFile[];
}

/**
 * Reads a directory at a commit, with the dates of an earlier one that are still right: those that the host would report
 * now. Its history of a path leaves a merge by the first parent that has the path as it is after the merge, and shows every
 * other commit that changes it. So along the first parents a path keeps its history, unless a merge changes it.
 */
export async function readSince(api: GitLabApi, request: TreeRequest, earlier: Snapshot | null): Promise<readonly CachedFile[]> {
  const fresh = async (): Promise<CachedFile[]> => withDates(await readTree(api, request), new Map());
  const dates = new Map(earlier?.files.flatMap(({ path, createdAt }) => (createdAt === null ? [] : [[path, createdAt]])));
  if (earlier === null || dates.size === 0) return await fresh();
  // No more requests than there are dates to be asked for again.
  const maxPages = Math.min(dates.size, 10);
  const trunk = await readCommits(api, request, earlier.sha, {}, maxPages);
  if (trunk === null || !isTrunk(trunk, earlier.sha, request.sha)) return await fresh();
  if (!trunk.some(isMerge)) return withDates(await readTree(api, request), dates);

  const query = request.directory === '' ? {} : { path: request.directory };
  const changes = await readCommits(api, request, earlier.sha, query, maxPages);
  if (changes?.length === 0) return earlier.files;
  // What a merge changes is known only if nothing else has changed the directory.
  if (changes === null || (changes.length > 1 && changes.some(isMerge))) return await fresh();
  const tree = await readTree(api, request);
  if (changes.some(isMerge)) for (const file of earlier.files) if (isChanged(file, tree)) dates.delete(file.path);
  return withDates(tree, dates);
}

// What versions of GitLab return if a commit of the range is gone.
const unknownCommitStatuses: ReadonlySet<number> = new Set([400, 404, 500]);

/**
 * The commits along the first parents since an earlier one, the newest first: all, or those that change a path. Null if
 * there are more than `maxPages` pages of them, or if the earlier commit is gone.
 */
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
    if (!(error instanceof Refusal) || !unknownCommitStatuses.has(error.status)) throw error;
  }
  return null;
}

/** Do the commits lead back to the earlier one? They don't if history was rewritten. */
function isTrunk(commits: readonly Commit[], earlier: string, sha: string): boolean {
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

/** One request for each page. A directory that does not exist is empty. */
async function readTree(api: GitLabApi, request: TreeRequest): Promise<Tree> {
  try {
    const tree = (await readPages(api, request, null)) ?? (await readPages(api, request, { page: 1 }));
    if (tree === null) throw failed('the pages of a directory lead back to earlier ones');
    return tree;
  } catch (error) {
    if (isOfDirectory(error)) return new Map();
    throw error;
  }
}

/**
 * Reads from a page on. Null if the pages lead back to an earlier one: older versions name them by the id of a file's
 * content, and files may have the same one. That can't happen to pages with numbers.
 */
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
