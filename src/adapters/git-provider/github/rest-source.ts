import { failed, malformed, notFound } from './failures.ts';
import { readHead } from './head.ts';
import { parseName } from './name.ts';
import { parseJson } from './parse.ts';
import { get, getJson, lastPage } from './rest.ts';
import type { RestTrees } from './rest-tree.ts';
import { RestCommits, RestComparison, RestRepository } from './schema.ts';
import type { Dates, Source } from './source.ts';
import type { Transport } from './transport.ts';

const perPage = 100;

/** Reads public repositories without a credential, which GraphQL wants. It takes one request or two for each file. */
export function createRestSource(transport: Transport, baseUrl: string, trees: RestTrees): Source {
  async function repositoryOf(repository: string, signal: AbortSignal): Promise<RestRepository> {
    const { owner, name } = parseName(repository);
    const call = { route: 'GET /repos/{owner}/{repo}', parameters: { owner, repo: name }, expects: [404] };
    const { status, text } = await get(transport, baseUrl, call, signal);
    if (status === 404) throw notFound(repository);
    return parseJson(RestRepository, text, 'the repository');
  }

  async function headOf(path: string, signal: AbortSignal): Promise<string | null> {
    const head = await readHead(transport, path, null, signal);
    if (head.kind === 'commit') return head.oid;
    if (head.kind === 'empty') return null;
    throw failed('it does not tell the head of a repository that it knows');
  }

  /** The object id of a directory; null where it is missing, or no directory. */
  async function directoryOid(path: string, head: string, directory: string, signal: AbortSignal): Promise<string | null> {
    let oid = head;
    for (const segment of directory === '' ? [] : directory.split('/')) {
      const { truncated, tree } = await trees.read(parseName(path), oid, false, signal);
      const entry = tree.find((each) => each.path === segment && each.type === 'tree');
      if (entry === undefined && truncated) throw failed('a directory is too large to find another in it');
      if (entry === undefined) return null;
      oid = entry.sha;
    }
    return oid;
  }

  async function dateOf(path: string, head: string, file: string, signal: AbortSignal): Promise<number | null> {
    const { owner, name } = parseName(path);
    const call = {
      route: 'GET /repos/{owner}/{repo}/commits',
      parameters: { owner, repo: name, sha: head, path: file, per_page: perPage },
    };
    const newest = await get(transport, baseUrl, call, signal);
    const page = lastPage(baseUrl, newest.headers['link']);
    if (page === 1) return parseJson(RestCommits, newest.text, 'the history').at(-1) ?? null;
    const last = { ...call, parameters: { ...call.parameters, page }, what: 'the history' };
    const oldest = (await getJson(transport, baseUrl, last, RestCommits, signal)).at(-1);
    if (oldest === undefined) throw malformed('the history');
    return oldest;
  }

  async function isAncestor(path: string, earlier: string, head: string, signal: AbortSignal): Promise<boolean> {
    const { owner, name } = parseName(path);
    const call = {
      route: 'GET /repos/{owner}/{repo}/compare/{basehead}',
      // The changed files come with the first page only, and are not wanted.
      parameters: { owner, repo: name, basehead: `${earlier}...${head}`, per_page: 1, page: 2 },
      expects: [404],
    };
    const { status, text } = await get(transport, baseUrl, call, signal);
    if (status === 404) return false;
    return parseJson(RestComparison, text, 'two commits').status === 'ahead';
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
      return { path, name, head, directory, files, descends };
    },
    async datesOf({ path, head, files }, signal): Promise<Dates> {
      const dates = await Promise.all(files.map(async (file) => [file, await dateOf(path, head, file, signal)] as const));
      return new Map(dates.filter((dated): dated is readonly [string, number] => dated[1] !== null));
    },
  };
}
