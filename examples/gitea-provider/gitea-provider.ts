// A git provider for Gitea and Forgejo. It needs the packages `skep` and `zod`. README.md says how to use it.
import {
  explained, Failure, isFailureOf, type Branch, type DatedFile, type DirectoryListing, type FileContentId, type FileQuery, type GitProvider,
  type HostPage, type HostPageRequest, type Reason, type SearchHit,
} from 'skep';
import { z } from 'zod';

export interface GiteaOptions {
  /** The address of Gitea or Forgejo: `https://git.example.com`. */
  readonly url: string;
  /** An access token with the scope `read:repository`. */
  readonly token: string;
  /** Limit of one call, in milliseconds. */
  readonly timeoutMs?: number;
  /** The maximum number of files in a listing. Each takes one or two requests. */
  readonly maxFiles?: number;
  /** Replaces the global `fetch`, for tests and proxies. */
  readonly fetch?: typeof fetch;
}

const name = 'gitea';
// The maxima in Gitea's default configuration.
const treePageSize = 1000;
const searchPageSize = 50;
const datesAtOnce = 8;

// The field `empty` is not read: it stays true for some time after the first push.
const repositorySchema = z.object({ full_name: z.string(), default_branch: z.string(), archived: z.boolean() });
const searchSchema = z.object({ data: z.array(z.object({ full_name: z.string() })) });
const refsSchema = z.array(z.object({ ref: z.string(), object: z.object({ sha: z.string() }) }));
const treeEntrySchema = z.object({ path: z.string(), mode: z.string(), type: z.string(), sha: z.string() });

// An empty tree, and a page after the last one, are null.
const treeSchema = z.object({ tree: z.array(treeEntrySchema).nullable(), truncated: z.boolean() });
const commitsSchema = z.array(z.object({ commit: z.object({ committer: z.object({ date: z.iso.datetime({ offset: true }) }) }) }));

// Gitea leaves out the content of files above its own limit, 10 MB by default.
const blobSchema = z.object({ size: z.int(), content: z.base64().nullable() });

type TreeEntry = z.infer<typeof treeEntrySchema>;

/** Gets JSON of this form from a path below the API. Throws the failures of the port. */
type Get = <T>(path: string, schema: z.ZodType<T>) => Promise<{ readonly body: T; readonly headers: Headers }>;

/** Serves the repositories of a Gitea or Forgejo over its REST API. */
export function createGiteaProvider(options: GiteaOptions): GitProvider {
  const { token, timeoutMs = 30_000, maxFiles = 2000, fetch: request = fetch } = options;
  const url = options.url.replace(/\/+$/u, '');
  const closing = new AbortController();

  /** One time limit for all requests of a call. */
  function callOf(repository: string, signal: AbortSignal | undefined): Get {
    const limit = AbortSignal.timeout(timeoutMs);
    const ending = AbortSignal.any([limit, closing.signal, ...(signal === undefined ? [] : [signal])]);
    return async (path, schema) => {
      try {
        const response = await request(`${url}/api/v1${path}`, { headers: { authorization: `token ${token}` }, signal: ending });
        if (!response.ok) throw failureOf(response, repository);
        return { body: schema.parse(await response.json()), headers: response.headers };
      } catch (error) {
        signal?.throwIfAborted();
        closing.signal.throwIfAborted();
        if (limit.aborted) throw new Failure('provider_timeout', { provider: name, limitMs: timeoutMs });
        if (error instanceof Failure) throw error;
        throw failed('it can not be reached, or does not answer as documented', error);
      }
    };
  }

  async function list(get: Get, repository: string, query: FileQuery): Promise<DirectoryListing> {
    const { path: fullName, head } = await findRepository(get, repository);
    const base = `/repos/${pathOf(fullName)}`;
    const directory = query.directory(fullName.slice(fullName.lastIndexOf('/') + 1));
    if (head === null) return { directory, files: [] };
    // Everything is read at this commit, so a push at the same time does not mix two states.
    const tree = await findTree(get, base, head.commit, directory);
    const entries = tree === null ? [] : await readTree(get, base, tree, true);
    const wanted = entries.filter(isReadableFile).filter(({ path }) => query.accepts(path));
    if (wanted.length > maxFiles) throw failed(`the directory has more than ${maxFiles} files`);
    const files: DatedFile[] = [];
    const dated = async ({ path: below, sha: blobId }: TreeEntry): Promise<DatedFile> => {
      const path = directory === '' ? below : `${directory}/${below}`;
      return { path, blobId, createdAt: await firstDate(get, base, head.commit, path) };
    };
    for (let at = 0; at < wanted.length; at += datesAtOnce) {
      files.push(...(await Promise.all(wanted.slice(at, at + datesAtOnce).map(dated))));
    }
    return { directory, files };
  }

  return {
    name,
    family: 'other',
    hosts: [new URL(url).host],
    listFiles: async (repository, query, signal) => await list(callOf(repository, signal), repository, query),
    readFile: async (repository, file, maxBytes, signal) => await read(callOf(repository, signal), repository, file, maxBytes),
    async find(repository, signal) {
      const { path, head, isArchived } = await findRepository(callOf(repository, signal), repository);
      return { path, defaultBranch: head?.name ?? null, ...(isArchived ? { isArchived } : {}) };
    },
    searchRepositories: async (text, page, signal) => await search(callOf('', signal), text, page),
    listBranches: async (repository, page, signal) => await listBranches(callOf(repository, signal), repository, page),
    async remote(repository, signal) {
      signal?.throwIfAborted();
      const authorization = `Basic ${Buffer.from(`oauth2:${token}`).toString('base64')}`;
      return { url: `${url}/${pathOf(repository)}.git`, authorization };
    },
    async check() {
      try {
        const { body } = await callOf('', undefined)('/version', z.object({ version: z.string() }));
        return { ok: true, detail: `Gitea ${body.version} at ${url}` };
      } catch (error) {
        return { ok: false, detail: error instanceof Error ? error.message : 'the check failed' };
      }
    },
    async close() {
      closing.abort(failed('the provider is closed'));
    },
  };
}

/** Returns the repository, and its default branch: null if the repository is empty. */
async function findRepository(get: Get, repository: string): Promise<{ path: string; isArchived: boolean; head: Branch | null }> {
  const { body } = await get(`/repos/${pathOf(repository)}`, repositorySchema);
  const { full_name: path, archived: isArchived, default_branch: branch } = body;
  const branches = await readBranches(get, path, `/${pathOf(branch)}`);
  return { path, isArchived, head: branches.find((each) => each.name === branch) ?? null };
}

/** Reads all branches, or those at or below a path, from git. Gitea's own list of branches fails for some time after the first push. */
async function readBranches(get: Get, repository: string, below = ''): Promise<readonly Branch[]> {
  const base = `/repos/${pathOf(repository)}`;
  const { body } = await get(`${base}/git/refs/heads${below}`, refsSchema).catch(async (error: unknown) => {
    if (!isFailureOf(error, 'repository_not_found')) throw error;
    // Gitea returns the same status if the repository has no such branch, and if there is no such repository.
    await get(base, repositorySchema);
    return { body: [] };
  });
  return body.map(({ ref, object }) => ({ name: ref.slice('refs/heads/'.length), commit: object.sha }));
}

/** Gitea returns all branches at once. The token of a page is the last name of the page before. */
async function listBranches(get: Get, repository: string, { after, limit }: HostPageRequest): Promise<HostPage<Branch>> {
  const all = (await readBranches(get, repository)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const rest = all.filter(({ name }) => after === null || name > after);
  const items = rest.slice(0, limit);
  return { items, next: rest.length > limit ? (items.at(-1)?.name ?? null) : null };
}

/** Searches the names of repositories. The token of a page is Gitea's page, and how many of its results were returned before. */
async function search(get: Get, text: string, { after, limit }: HostPageRequest): Promise<HostPage<SearchHit>> {
  const [page = 1, from = 0] = (after ?? '1.0').split('.').map(Number);
  const query = new URLSearchParams({ q: text, sort: 'id', page: String(page), limit: String(searchPageSize) });
  const { body, headers } = await get(`/repos/search?${String(query)}`, searchSchema);
  // Gitea takes `%` and `_` for patterns and a comma for "or", and also finds topics.
  const found = body.data.filter(({ full_name: path }) => path.toLowerCase().includes(text.toLowerCase()));
  const items = found.slice(from, from + limit).map(({ full_name: path }) => ({ path }));
  if (from + limit < found.length) return { items, next: `${page}.${from + limit}` };
  const hasNext = /rel="next"/u.test(headers.get('link') ?? '');
  return { items, next: hasNext ? `${page + 1}.0` : null };
}

async function read(get: Get, repository: string, { path, blobId }: FileContentId, maxBytes: number): Promise<Uint8Array> {
  const missing = new Failure('file_not_found', { path });
  if (!/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u.test(blobId)) throw missing;
  const { body } = await get(`/repos/${pathOf(repository)}/git/blobs/${blobId}`, blobSchema).catch(async (error: unknown) => {
    if (!isAbsence(error)) throw error;
    // For a missing file and a missing repository, Gitea returns the same status.
    await get(`/repos/${pathOf(repository)}`, repositorySchema);
    throw missing;
  });
  if (body.size > maxBytes || body.content === null) throw failed({ code: 'too_large', limit: `${maxBytes} bytes in a file` });
  return Buffer.from(body.content, 'base64');
}

/** Returns the tree of a directory at a commit. Null if there is none. Sends one request for each segment and page. */
async function findTree(get: Get, base: string, commit: string, directory: string): Promise<string | null> {
  let tree = commit;
  for (const segment of directory.split('/').filter((part) => part !== '')) {
    const entries = await readTree(get, base, tree, false);
    const found = entries.find(({ path, type }) => path === segment && type === 'tree');
    if (found === undefined) return null;
    tree = found.sha;
  }
  return tree;
}

/** Reads all pages of a tree. */
async function readTree(get: Get, base: string, tree: string, recursive: boolean): Promise<readonly TreeEntry[]> {
  const entries: TreeEntry[] = [];
  for (let page = 1; ; page += 1) {
    const query = new URLSearchParams({ recursive: String(recursive), page: String(page), per_page: String(treePageSize) });
    const { body } = await get(`${base}/git/trees/${tree}?${String(query)}`, treeSchema);
    entries.push(...(body.tree ?? []));
    if (!body.truncated || body.tree === null) return entries;
  }
}

/** Links and submodules have other modes. The API does not return the bytes of a name that is not UTF-8, so it has no date. */
function isReadableFile({ path, mode, type }: TreeEntry): boolean {
  return type === 'blob' && mode.startsWith('100') && !path.includes('\ufffd');
}

/**
 * Returns the committer date of the path's first commit, in ms. The history starts with the latest, so it is on the last page. The path
 * is a pathspec of git. Gitea chooses the size of the pages, and its `X-PageCount` is for another size.
 */
async function firstDate(get: Get, base: string, commit: string, path: string): Promise<number> {
  const read = async (page: number) => {
    const position = { sha: commit, path: `:(literal)${path}`, page: String(page) };
    const query = new URLSearchParams({ ...position, stat: 'false', verification: 'false', files: 'false' });
    return await get(`${base}/commits?${String(query)}`, commitsSchema);
  };
  let { body, headers } = await read(1);
  const total = Number(headers.get('x-total-count') ?? body.length);
  if (total > body.length) ({ body } = await read(Math.ceil(total / body.length)));
  const date = Date.parse(body.at(-1)?.commit.committer.date ?? '');
  if (Number.isNaN(date)) throw failed('the history does not say where a file comes from');
  return date;
}

/** Encodes every segment, so no name can be read as a query, a pattern or another path. */
function pathOf(repository: string): string {
  return repository.split('/').map(encodeURIComponent).join('/');
}

/** Gitea returns 400 if the repository exists, but not the content. */
function isAbsence(error: unknown): boolean {
  if (isFailureOf(error, 'repository_not_found')) return true;
  const reason = isFailureOf(error, 'provider_failed') ? error.context.reason : null;
  return reason?.code === 'unexpected_status' && reason.status === 400;
}

function failureOf({ status, headers }: Response, repository: string): Error {
  if (status === 404) return new Failure('repository_not_found', { repository });
  if (status === 401) return new Failure('provider_unauthorized', { provider: name });
  const retryAfterSeconds = Number(headers.get('retry-after')) || 60;
  if (status === 429) return new Failure('provider_rate_limited', { provider: name, retryAfterSeconds });
  return failed(status >= 500 ? { code: 'server_error', status } : { code: 'unexpected_status', status });
}

function failed(why: Reason | string, cause?: unknown): Error {
  const reason = typeof why === 'string' ? explained(why) : why;
  return new Failure('provider_failed', { provider: name, reason }, cause === undefined ? {} : { cause });
}
