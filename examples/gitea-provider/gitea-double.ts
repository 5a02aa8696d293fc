import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { promisify } from 'node:util';

/** The part of Gitea's REST API that the provider uses, on loopback, with real git repositories. */
export interface GiteaDouble {
  readonly url: string;
  /** Serves a bare repository under this name. Replaces an earlier one. */
  put(fullName: string, gitDir: string): void;
  /** Requests for the former name are redirected. */
  rename(from: string, to: string): void;
  archive(fullName: string): void;
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

// Gitea's own limits.
const maxTreePage = 1000;
const pageSizes = { initial: 30, max: 50 };
const commitsPageSize = 50;
const missing: Answer = { status: 404, body: { message: 'not found' } };

export async function startGiteaDouble(token: string): Promise<GiteaDouble> {
  const repositories = new Map<string, string>();
  const renamed = new Map<string, string>();
  const archived = new Set<string>();
  const server = createServer((request, response) => {
    void answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the double listens nowhere');

  async function answer({ url = '/', headers: { authorization } }: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, body, headers } = await answerTo(url, authorization).catch(() => missing);
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body ?? {}));
  }

  async function answerTo(target: string, authorization: string | undefined): Promise<Answer> {
    const { pathname, searchParams } = new URL(target, 'http://gitea');
    if (authorization !== `token ${token}`) return { status: 401, body: { message: 'token is required' } };
    if (pathname === '/api/v1/version') return { status: 200, body: { version: '1.26.0' } };
    if (pathname === '/api/v1/repos/search') return searchIn([...repositories.keys()], target, searchParams);
    const [, owner, repo, kind, ...rest] = pathname.slice('/api/v1/'.length).split('/').map(decodeURIComponent);
    const fullName = `${owner}/${repo}`;
    const current = renamed.get(fullName);
    if (current !== undefined) return { status: 307, headers: { location: target.replace(`/repos/${fullName}`, `/repos/${current}`) } };
    const gitDir = repositories.get(fullName);
    if (gitDir === undefined) return missing;
    if (kind === undefined) return { status: 200, body: await repositoryOf(gitDir, fullName, archived.has(fullName)) };
    if (kind === 'git' && rest[0] === 'refs') return await refsOf(gitDir, rest.join('/'));
    if (kind === 'git' && rest[0] === 'trees') return { status: 200, body: await treeOf(gitDir, rest[1] ?? '', searchParams) };
    if (kind === 'git' && rest[0] === 'blobs') return await blobOf(gitDir, rest[1] ?? '');
    return kind === 'commits' ? await commitsOf(gitDir, searchParams) : missing;
  }

  return {
    url: `http://127.0.0.1:${address.port}`,
    put: (fullName, gitDir) => void repositories.set(fullName, gitDir),
    rename(from, to) {
      repositories.set(to, repositories.get(from) ?? '');
      repositories.delete(from);
      renamed.set(from, to);
    },
    archive: (fullName) => void archived.add(fullName),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function repositoryOf(gitDir: string, fullName: string, archived: boolean): Promise<object> {
  // Gitea corrects `empty` some time after the first push. Here it is never corrected.
  return { full_name: fullName, default_branch: await git(gitDir, 'symbolic-ref', '--short', 'HEAD'), empty: true, archived };
}

/** Returns the branch or tag of this name, and those below it. */
async function refsOf(gitDir: string, name: string): Promise<Answer> {
  const output = await git(gitDir, 'for-each-ref', '--format=%(objectname) %(refname)', name);
  if (output === '') return missing;
  const refs = output.split('\n').map((line) => {
    const [sha, ref] = line.split(' ');
    return { ref, object: { sha } };
  });
  return { status: 200, body: refs };
}

/** The text becomes a pattern of SQL's LIKE, without escapes. A comma separates alternatives. */
function searchIn(fullNames: readonly string[], target: string, query: URLSearchParams): Answer {
  const text = (query.get('q') ?? '').trim().toLowerCase();
  const [ownerText = '', repoText, ...more] = text.split('/');
  const found = fullNames.filter((fullName) => {
    const [owner = '', repo = ''] = fullName.toLowerCase().split('/');
    const isPath = repoText !== undefined && more.length === 0 && isLike(owner, ownerText) && isLike(repo, repoText);
    return isPath || text.split(',').some((each) => isLike(repo, each));
  });
  const size = Math.min(Number(query.get('limit') ?? pageSizes.initial), pageSizes.max);
  const isLast = Number(query.get('page') ?? 1) * size >= found.length;
  const data = pageOf(found, query, size).map((fullName) => ({ full_name: fullName }));
  return { status: 200, headers: isLast ? {} : { link: `<http://gitea${target}>; rel="next"` }, body: { ok: true, data } };
}

function isLike(name: string, pattern: string): boolean {
  const source = pattern.replaceAll(/./gsu, (each) => (each === '%' ? '.*' : each === '_' ? '.' : RegExp.escape(each)));
  return new RegExp(source, 'u').test(name);
}

function pageOf<T>(all: readonly T[], query: URLSearchParams, size: number): readonly T[] {
  const start = (Number(query.get('page') ?? 1) - 1) * size;
  return all.slice(start, start + size);
}

async function treeOf(gitDir: string, tree: string, query: URLSearchParams): Promise<object> {
  const output = await git(gitDir, 'ls-tree', '-z', ...(query.get('recursive') === 'true' ? ['-r', '-t'] : []), tree);
  const entries = output.split('\0').filter((line) => line !== '').map((line) => {
    const [mode, type, sha] = line.slice(0, line.indexOf('\t')).split(' ');
    return { path: line.slice(line.indexOf('\t') + 1), mode, type, sha };
  });
  const size = Math.min(Number(query.get('per_page') ?? maxTreePage), maxTreePage);
  const page = pageOf(entries, query, size);
  const truncated = Number(query.get('page') ?? 1) * size < entries.length;
  return { tree: page.length === 0 ? null : page, truncated, total_count: entries.length };
}

async function blobOf(gitDir: string, sha: string): Promise<Answer> {
  const options = { encoding: 'buffer', maxBuffer: 64 * 1024 * 1024 } as const;
  const read = promisify(execFile)('git', ['--git-dir', gitDir, 'cat-file', 'blob', sha], options);
  const content = await read.then(({ stdout }) => stdout, () => null);
  if (content === null) return { status: 400, body: { message: 'object does not exist' } };
  return { status: 200, body: { sha, size: content.length, encoding: 'base64', content: content.toString('base64') } };
}

/** The path is a pathspec. With a path, `limit` does not change the pages, but the number of pages is for pages of this size. */
async function commitsOf(gitDir: string, query: URLSearchParams): Promise<Answer> {
  const [sha, path] = [query.get('sha') ?? 'HEAD', query.get('path') ?? '.'];
  const log = await git(gitDir, 'log', '--format=%H %aI %cI', sha, '--', path);
  if (log === '') return missing;
  const commits = log.split('\n').map((line) => {
    const [sha, authored, committed] = line.split(' ');
    return { sha, commit: { author: { date: authored }, committer: { date: committed } } };
  });
  const limit = Math.min(Number(query.get('limit') ?? pageSizes.initial), pageSizes.max);
  const headers = { 'x-total-count': String(commits.length), 'x-pagecount': String(Math.ceil(commits.length / limit)) };
  return { status: 200, headers, body: pageOf(commits, query, commitsPageSize) };
}

async function git(gitDir: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('git', ['--git-dir', gitDir, ...args], { maxBuffer: 64 * 1024 * 1024 });
  return stdout.replace(/\n$/u, '');
}
