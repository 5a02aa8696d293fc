import { failed, malformed, notFound, parseJson, reasons } from './github-failures.ts';
import { sameOriginUrl, type GitHubApi } from './github-api.ts';
import { RestCommits, RestComparison, RestRepository } from './github-schemas.ts';
import { readHead } from './head-commit.ts';
import { parseName, type RepositorySource } from './repository-source.ts';
import type { RestTrees } from './rest-trees.ts';

const perPage = 100;

/** Reads public repositories without a credential, which GraphQL wants. It takes one request or two for each file. */
export function createRestListing(api: GitHubApi, baseUrl: string, trees: RestTrees): RepositorySource {
  async function repositoryOf(repository: string, signal: AbortSignal): Promise<RestRepository> {
    const { owner, name } = parseName(repository);
    const call = { route: 'GET /repos/{owner}/{repo}', parameters: { owner, repo: name }, expects: [404], follow: true };
    const { status, text } = await api.send(call, signal);
    if (status === 404) throw notFound(repository);
    return parseJson(RestRepository, text, 'the repository');
  }

  async function headOf(path: string, signal: AbortSignal): Promise<string | null> {
    const head = await readHead(api, path, null, signal);
    if (head.kind === 'commit') return head.oid;
    if (head.kind === 'empty') return null;
    throw failed(reasons.missingHead);
  }

  /** The object id of a directory. Null if it is missing, or no directory. */
  async function directoryOid(path: string, head: string, directory: string, signal: AbortSignal): Promise<string | null> {
    let oid = head;
    for (const segment of directory === '' ? [] : directory.split('/')) {
      const { truncated, tree } = await trees.read(parseName(path), oid, false, signal);
      const entry = tree.find((each) => each.path === segment && each.type === 'tree');
      if (entry === undefined && truncated) throw failed(reasons.directoryTooLarge);
      if (entry === undefined) return null;
      oid = entry.sha;
    }
    return oid;
  }

  async function dateOf(path: string, head: string, file: string, signal: AbortSignal): Promise<number | null> {
    const { owner, name } = parseName(path);
    const parameters = { owner, repo: name, sha: head, path: file, per_page: perPage };
    const call = { route: 'GET /repos/{owner}/{repo}/commits', parameters, follow: true };
    const newest = await api.send(call, signal);
    const page = lastPage(baseUrl, newest.headers.get('link'));
    if (page === 1) return parseJson(RestCommits, newest.text, 'the history').at(-1) ?? null;
    const last = await api.send({ ...call, parameters: { ...parameters, page } }, signal);
    const oldest = parseJson(RestCommits, last.text, 'the history').at(-1);
    if (oldest === undefined) throw malformed('the history');
    return oldest;
  }

  async function isAncestor(path: string, earlier: string, head: string, signal: AbortSignal): Promise<boolean> {
    const { owner, name } = parseName(path);
    // The changed files come with the first page only, and are not wanted.
    const parameters = { owner, repo: name, basehead: `${earlier}...${head}`, per_page: 1, page: 2 };
    const call = { route: 'GET /repos/{owner}/{repo}/compare/{basehead}', parameters, expects: [404], follow: true };
    const { status, text } = await api.send(call, signal);
    return status !== 404 && parseJson(RestComparison, text, 'two commits').status === 'ahead';
  }

  return {
    async find(repository, signal) {
      const { full_name: path, default_branch: branch } = await repositoryOf(repository, signal);
      const head = await headOf(path, signal);
      return { path, defaultBranch: head === null ? null : branch };
    },
    async open({ repository, directoryOf, earlier }, signal) {
      const { full_name: path, name } = await repositoryOf(repository, signal);
      const head = await headOf(path, signal);
      const directory = directoryOf(name);
      const oid = head === null ? null : await directoryOid(path, head, directory, signal);
      const files = oid === null ? [] : await trees.files(parseName(path), oid, directory, signal);
      const descends = async (within: AbortSignal): Promise<boolean> =>
        earlier !== null && head !== null && (await isAncestor(path, earlier, head, within));
      return { head: { id: path, name, commit: head, etag: null }, directory, files, descends };
    },
    async addDates({ path, commit, files }, dates, signal) {
      const requests = files.map(async (file) => {
        const date = await dateOf(path, commit, file, signal);
        if (date !== null) dates.set(file, date);
      });
      await Promise.all(requests);
    },
  };
}

/** The number of the last page, by the `Link` header. 1 if there is no other. */
function lastPage(baseUrl: string, link: string | null): number {
  const target = /<([^<>]*)>\s*;[^,]*\brel="?last"?/u.exec(link ?? '')?.[1];
  if (target === undefined) return 1;
  const page = sameOriginUrl(target, new URL(baseUrl)).searchParams.get('page') ?? '';
  if (!/^[1-9]\d{0,8}$/u.test(page)) throw failed(reasons.pageWithoutNumber);
  return Number(page);
}
