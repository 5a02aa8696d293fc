import { z } from 'zod';
import { prefixOf, type TreeFile } from '../incremental-listing.ts';
import { CommitDate, linkIn, Oid } from '../response-fields.ts';
import { itemsPerHostPage } from '../paging.ts';
import { type GitHubApi, sameOriginUrl } from './github-api.ts';
import { failed, malformed, notFound, parseResponse, tooLarge } from './github-failures.ts';
import { fullName, parseName, readHead, type RepositoryName, type RepositorySource } from './github-listing.ts';

const RestRepository = z.object({ name: z.string().min(1), full_name: fullName, default_branch: z.string(), archived: z.boolean() });
type RestRepository = z.infer<typeof RestRepository>;

const RestEntry = z.object({ path: z.string().min(1), mode: z.string(), type: z.string(), sha: Oid });

const RestTree = z.object({ truncated: z.boolean(), tree: z.array(RestEntry) });
type RestTree = z.infer<typeof RestTree>;

const RestCommits = z.array(
  z.object({ commit: z.object({ committer: z.object({ date: CommitDate }) }) }).transform(({ commit }) => commit.committer.date),
);

const RestComparison = z.object({ status: z.enum(['ahead', 'behind', 'identical', 'diverged']) });

/** Reads public repositories without a credential, because GraphQL requires one. Takes one or two requests per file. */
export function createRestListing(api: GitHubApi, baseUrl: string, trees: RestTrees): RepositorySource {
  async function repositoryOf(repository: string, signal: AbortSignal): Promise<RestRepository> {
    const call = { route: 'GET /repos/{owner}/{repo}', parameters: { ...parseName(repository) }, acceptedStatuses: [404], follow: true };
    const { status, text } = await api.send(call, signal);
    if (status === 404) throw notFound(repository);
    return parseResponse(RestRepository, text, 'the repository');
  }

  async function headOf(path: string, signal: AbortSignal): Promise<string | null> {
    const head = await readHead(api, path, null, signal);
    if (head === null) throw failed('it returns no head for a repository that exists');
    return head.commit;
  }

  return {
    async find(repository, signal) {
      const { full_name: path, default_branch: branch, archived: isArchived } = await repositoryOf(repository, signal);
      const commit = await headOf(path, signal);
      return { path, defaultBranch: commit === null ? null : branch, ...(isArchived && { isArchived }) };
    },
    async open({ repository, directoryOf, earlier }, signal) {
      const { full_name: id, name } = await repositoryOf(repository, signal);
      const commit = await headOf(id, signal);
      const directory = directoryOf(name);
      const oid = commit === null ? null : await trees.directoryOid(id, commit, directory, signal);
      const files = oid === null ? [] : await trees.files(parseName(id), oid, directory, signal);
      const descends = async (within: AbortSignal): Promise<boolean> =>
        earlier !== null && commit !== null && (await isAncestor(api, id, earlier, commit, within));
      return { head: { id, name, commit, etag: null }, directory, files, descends };
    },
    async addDates(path, commit, paths, dates, signal) {
      const requests = paths.map(async (file) => {
        const date = await dateOf(api, baseUrl, { ...parseName(path), sha: commit, path: file, per_page: itemsPerHostPage }, signal);
        if (date !== null) dates.set(file, date);
      });
      await Promise.all(requests);
    },
  };
}

/** Returns the date of a history's oldest commit, which is the last one of the last page. */
async function dateOf(api: GitHubApi, baseUrl: string, history: Record<string, unknown>, signal: AbortSignal): Promise<number | null> {
  const route = 'GET /repos/{owner}/{repo}/commits';
  const newest = await api.send({ route, parameters: history, follow: true }, signal);
  const page = lastPage(baseUrl, newest.headers);
  if (page === 1) return parseResponse(RestCommits, newest.text, 'the history').at(-1) ?? null;
  const last = await api.send({ route, parameters: { ...history, page }, follow: true }, signal);
  const oldest = parseResponse(RestCommits, last.text, 'the history').at(-1);
  if (oldest === undefined) throw malformed('the history');
  return oldest;
}

async function isAncestor(api: GitHubApi, path: string, earlier: string, commit: string, signal: AbortSignal): Promise<boolean> {
  const route = 'GET /repos/{owner}/{repo}/compare/{basehead}';
  // Only the first page has the changed files, which are not needed.
  const parameters = { ...parseName(path), basehead: `${earlier}...${commit}`, per_page: 1, page: 2 };
  const { status, text } = await api.send({ route, parameters, acceptedStatuses: [404], follow: true }, signal);
  return status !== 404 && parseResponse(RestComparison, text, 'two commits').status === 'ahead';
}

/** Returns the number of the last page from the `Link` header. 1 if there is only one page. */
function lastPage(baseUrl: string, headers: Headers): number {
  const target = linkIn(headers, 'last');
  if (target === null) return 1;
  const page = sameOriginUrl(target, new URL(baseUrl)).searchParams.get('page') ?? '';
  if (!/^[1-9]\d{0,8}$/u.test(page)) throw failed('its response links to a page that has no number');
  return Number(page);
}

export type RestTrees = ReturnType<typeof createRestTrees>;

export function createRestTrees(api: GitHubApi, maxFiles: number) {
  async function read(repository: RepositoryName, oid: string, recursive: boolean, signal: AbortSignal): Promise<RestTree> {
    const route = 'GET /repos/{owner}/{repo}/git/trees/{tree_sha}';
    const parameters = { ...repository, tree_sha: oid, ...(recursive ? { recursive: '1' } : {}) };
    const { text } = await api.send({ route, parameters, follow: true }, signal);
    return parseResponse(RestTree, text, 'a directory');
  }

  function add(files: TreeFile[], found: readonly TreeFile[]): void {
    if (files.length + found.length > maxFiles) throw tooLarge(`${maxFiles} files`);
    for (const file of found) files.push(file);
  }

  /** If a tree is too large for one response, reads it directory by directory. */
  async function collect(repository: RepositoryName, oid: string, prefix: string, files: TreeFile[], signal: AbortSignal): Promise<void> {
    const whole = await read(repository, oid, true, signal);
    if (!whole.truncated) return add(files, filesOf(whole, prefix));
    const { truncated, tree } = await read(repository, oid, false, signal);
    if (truncated) throw tooLarge('what one response holds of a single directory');
    add(files, filesOf({ truncated, tree }, prefix));
    const directories = tree.filter(({ type }) => type === 'tree');
    await Promise.all(directories.map(({ path, sha }) => collect(repository, sha, `${prefix}${path}/`, files, signal)));
  }

  return {
    /** Returns the object id of a directory. Null if the path is missing, or is not a directory. */
    async directoryOid(path: string, commit: string, directory: string, signal: AbortSignal): Promise<string | null> {
      let oid = commit;
      for (const segment of directory === '' ? [] : directory.split('/')) {
        const { truncated, tree } = await read(parseName(path), oid, false, signal);
        const entry = tree.find((each) => each.path === segment && each.type === 'tree');
        if (entry === undefined && truncated) throw failed('a directory is too large to find another in it');
        if (entry === undefined) return null;
        oid = entry.sha;
      }
      return oid;
    },
    async files(repository: RepositoryName, oid: string, directory: string, signal: AbortSignal): Promise<TreeFile[]> {
      const files: TreeFile[] = [];
      await collect(repository, oid, prefixOf(directory), files, signal);
      return files;
    },
  };
}

function filesOf({ tree }: RestTree, prefix: string): TreeFile[] {
  const regular = tree.filter(({ type, mode }) => type === 'blob' && mode.startsWith('100'));
  return regular.map(({ path, sha }) => ({ path: prefix + path, blobId: sha }));
}
