import {
  explained, Failure, isFailureOf, type DatedFile, type DirectoryListing, type FileContentId, type FileQuery, type GitProvider, type Reason,
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
// The maximum in Gitea's default configuration.
const treePageSize = 1000;
const datesAtOnce = 8;

const repositorySchema = z.object({ full_name: z.string(), default_branch: z.string(), empty: z.boolean() });
const branchSchema = z.object({ commit: z.object({ id: z.string() }) });
const treeSchema = z.object({
  tree: z.array(z.object({ path: z.string(), mode: z.string(), type: z.string(), sha: z.string() })),
  truncated: z.boolean(),
});
const commitsSchema = z.array(z.object({ commit: z.object({ committer: z.object({ date: z.iso.datetime({ offset: true }) }) }) }));

// Gitea leaves out the content of files above its own limit, 10 MB by default.
const blobSchema = z.object({ size: z.int(), content: z.base64().nullable() });

type TreeEntry = z.infer<typeof treeSchema>['tree'][number];

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
    const { body: found } = await get(`/repos/${pathOf(repository)}`, repositorySchema);
    const base = `/repos/${pathOf(found.full_name)}`;
    const directory = query.directory(found.full_name.slice(found.full_name.lastIndexOf('/') + 1));
    if (found.empty) return { directory, files: [] };
    // Everything is read at this commit, so a push at the same time does not mix two states.
    const { body: branch } = await get(`${base}/branches/${pathOf(found.default_branch)}`, branchSchema);
    const head = branch.commit.id;
    const tree = await findTree(get, base, head, directory);
    const entries = tree === null ? [] : await readTree(get, base, tree, true);
    const wanted = entries.filter(isReadableFile).filter(({ path }) => query.accepts(path));
    if (wanted.length > maxFiles) throw failed(`the directory has more than ${maxFiles} files`);
    const files: DatedFile[] = [];
    const dated = async ({ path: below, sha: blobId }: TreeEntry): Promise<DatedFile> => {
      const path = directory === '' ? below : `${directory}/${below}`;
      return { path, blobId, createdAt: await firstDate(get, base, head, path) };
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
      const { body } = await callOf(repository, signal)(`/repos/${pathOf(repository)}`, repositorySchema);
      return { path: body.full_name, defaultBranch: body.empty ? null : body.default_branch };
    },
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
    entries.push(...body.tree);
    if (!body.truncated || body.tree.length === 0) return entries;
  }
}

/** Links and submodules have other modes. The API does not return the bytes of a name that is not UTF-8, so it has no date. */
function isReadableFile({ path, mode, type }: TreeEntry): boolean {
  return type === 'blob' && mode.startsWith('100') && !path.includes('\ufffd');
}

/** Returns the committer date of the path's first commit, in ms. The history starts with the latest, so it is on the last page. */
async function firstDate(get: Get, base: string, commit: string, path: string): Promise<number> {
  const read = async (page: number) => {
    const query = new URLSearchParams({ sha: commit, path, page: String(page), stat: 'false', verification: 'false', files: 'false' });
    return await get(`${base}/commits?${String(query)}`, commitsSchema);
  };
  let { body, headers } = await read(1);
  const pages = Number(headers.get('x-pagecount') ?? '1');
  if (pages > 1) ({ body } = await read(pages));
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
