import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer, request as ask } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { createRepository, type RepositoryDescription } from '../../contracts/git-repository.ts';
import { startGitHttp, type GitHttp } from '../../doubles/git-http/index.ts';
import { startGitHubDouble, type GitHubDouble } from '../../doubles/github/index.ts';

/** A GitHub Enterprise Server: its API and its repositories behind one address. */
export interface GitHost {
  /** The URL of the REST API. */
  readonly url: string;
  readonly api: GitHubDouble;
  readonly git: GitHttp;
  close(): Promise<void>;
}

/** Starts a host with one private repository, `acme/shop`, and one valid token. */
export async function startGitHost(folder: string, token: string, repository: RepositoryDescription): Promise<GitHost> {
  const gitDir = join(folder, 'acme/shop.git');
  await mkdir(dirname(gitDir), { recursive: true });
  await createRepository(gitDir, repository);
  const api = await startGitHubDouble({ prefix: '/api/v3' });
  api.access.tokens.clear();
  api.access.tokens.add(token);
  api.repositories.put('acme/shop', gitDir, 'private');
  const git = await startGitHttp({ root: folder, authorization: `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}` });

  const front = createServer((message, response) => {
    const { origin } = new URL(message.url?.startsWith('/api/') === true ? api.url : git.url);
    const passed = ask(`${origin}${message.url}`, { method: message.method, headers: message.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    message.pipe(passed);
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}/api/v3`,
    api,
    git,
    async close() {
      front.closeAllConnections();
      front.close();
      await once(front, 'close');
      await Promise.all([api.close(), git.close()]);
    },
  };
}
