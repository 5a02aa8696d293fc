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
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

// Gitea's own limits.
const maxTreePage = 1000;
const maxCommitsPage = 50;
const missing: Answer = { status: 404, body: { message: 'not found' } };

export async function startGiteaDouble(token: string): Promise<GiteaDouble> {
  const repositories = new Map<string, string>();
  const renamed = new Map<string, string>();
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
    if (pathname === '/api/v1/version') return { status: 200, body: { version: '1.24.0' } };
    const [, owner, repo, kind, ...rest] = pathname.slice('/api/v1/'.length).split('/').map(decodeURIComponent);
    const fullName = `${owner}/${repo}`;
    const current = renamed.get(fullName);
    if (current !== undefined) return { status: 307, headers: { location: target.replace(`/repos/${fullName}`, `/repos/${current}`) } };
    const gitDir = repositories.get(fullName);
    if (gitDir === undefined) return missing;
    if (kind === undefined) return { status: 200, body: await repositoryOf(gitDir, fullName) };
    if (kind === 'branches') return { status: 200, body: await branchOf(gitDir, rest.join('/')) };
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
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function repositoryOf(gitDir: string, fullName: string): Promise<object> {
  const branches = await git(gitDir, 'for-each-ref', 'refs/heads');
  return { full_name: fullName, default_branch: await git(gitDir, 'symbolic-ref', '--short', 'HEAD'), empty: branches === '' };
}

async function branchOf(gitDir: string, branch: string): Promise<object> {
  return { commit: { id: await git(gitDir, 'rev-parse', `refs/heads/${branch}`) } };
}

async function treeOf(gitDir: string, tree: string, query: URLSearchParams): Promise<object> {
  const output = await git(gitDir, 'ls-tree', '-z', ...(query.get('recursive') === 'true' ? ['-r', '-t'] : []), tree);
  const entries = output.split('\0').filter((line) => line !== '').map((line) => {
    const [mode, type, sha] = line.slice(0, line.indexOf('\t')).split(' ');
    return { path: line.slice(line.indexOf('\t') + 1), mode, type, sha };
  });
  const size = Math.min(Number(query.get('per_page') ?? maxTreePage), maxTreePage);
  const start = (Number(query.get('page') ?? 1) - 1) * size;
  return { tree: entries.slice(start, start + size), truncated: start + size < entries.length, total_count: entries.length };
}

async function blobOf(gitDir: string, sha: string): Promise<Answer> {
  const options = { encoding: 'buffer', maxBuffer: 64 * 1024 * 1024 } as const;
  const read = promisify(execFile)('git', ['--git-dir', gitDir, 'cat-file', 'blob', sha], options);
  const content = await read.then(({ stdout }) => stdout, () => null);
  if (content === null) return { status: 400, body: { message: 'object does not exist' } };
  return { status: 200, body: { sha, size: content.length, encoding: 'base64', content: content.toString('base64') } };
}

async function commitsOf(gitDir: string, query: URLSearchParams): Promise<Answer> {
  const [sha, path] = [query.get('sha') ?? 'HEAD', query.get('path') ?? '.'];
  const log = await git(gitDir, '--literal-pathspecs', 'log', '--format=%H %aI %cI', sha, '--', path);
  const commits = log.split('\n').filter((line) => line !== '').map((line) => {
    const [sha, authored, committed] = line.split(' ');
    return { sha, commit: { author: { date: authored }, committer: { date: committed } } };
  });
  const size = Math.min(Number(query.get('limit') ?? maxCommitsPage), maxCommitsPage);
  const start = (Number(query.get('page') ?? 1) - 1) * size;
  const headers = { 'x-total-count': String(commits.length), 'x-pagecount': String(Math.ceil(commits.length / size)) };
  return { status: 200, headers, body: commits.slice(start, start + size) };
}

async function git(gitDir: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('git', ['--git-dir', gitDir, ...args], { maxBuffer: 64 * 1024 * 1024 });
  return stdout.replace(/\n$/u, '');
}
