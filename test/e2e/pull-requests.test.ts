import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient as createApi } from '../../src/client/index.ts';
import { talk } from '../adapters/cli/support.ts';
import { git } from '../contracts/git-repository.ts';
import { acpAgentCommand } from '../doubles/acp-agent/start.ts';
import { answerWith } from '../doubles/github/faults.ts';
import { createClient, object, type Answer, type Client } from '../support/client.ts';
import { executable, removeFolder, runSkep as runExecutable, startServer, temporaryFolder, type Server } from '../support/server.ts';
import { until } from '../support/until.ts';
import { startGitHost, type GitHost } from './agents/git-host.ts';
import { shop } from './agents/scene.ts';

const key = 'a-static-key-for-pull-requests';
const token = 'ghp_tokenOfPullRequests0123456789';
const conversations = '/api/v1/app-conversations';
const wanted = { title: 'Sell coffee', body: 'Tea is out.' };

let folder: string;
let host: GitHost;
let server: Server;
let call: Client;

beforeAll(async () => {
  folder = await temporaryFolder();
  host = await startGitHost(folder, token, shop);
  const env = { SKEP_API_KEY: key, SKEP_GIT_PROVIDERS: 'github', SKEP_GITHUB_URL: host.url, SKEP_GITHUB_TOKEN: token };
  const command = ['sh', '-c', 'exec sleep infinity'];
  const specs = [{ id: 'plain', command }, { id: 'coder', command, agent: { protocol: 'acp', command: acpAgentCommand() } }];
  server = await startServer({ env, config: { specs } });
  call = createClient(server.url, key);
});
afterAll(async () => {
  await server?.close();
  await host?.close();
  await removeFolder(folder);
});

function runSkep(...args: string[]) {
  return promisify(execFile)(process.execPath, [executable, ...args, '--url', server.url], { env: { ...process.env, SKEP_API_KEY: key } });
}

interface Work {
  readonly path: string;
  readonly branch: string;
  readonly publish: (body: object) => Promise<Answer>;
  readonly write: (text: string) => Promise<void>;
  /** Returns the content of the written file on the branch. */
  readonly published: () => Promise<string>;
}

async function startWork(client = call, spec = 'plain'): Promise<Work> {
  const id = String(object(await client('POST', conversations, { selected_repository: 'acme/shop', sandbox_spec_id: spec }))['id']);
  const path = `${conversations}/${id}`;
  const { sandbox_id: sandboxId } = await until(async () => object(await client('GET', path)), ({ start_status: status }) => status === 'READY');
  const branch = `skep/${id}`;
  return {
    path, branch,
    publish: (body) => client('POST', `${path}/publish`, body),
    write: (text) => writeFile(join(server.dataDir, 'sandboxes', String(sandboxId), 'workspace/work.txt'), text),
    published: () => git(join(folder, 'acme/shop.git'), ['show', `${branch}:work.txt`]),
  };
}

function pullRequests(branch: string) {
  const id = host.api.repositories.find('acme/shop')?.repository.id ?? 0;
  return host.api.pullRequests.of(id).filter(({ head }) => head === branch);
}

test('publishing opens a pull request, and publishing again updates it', async () => {
  const { path, branch, publish, write, published } = await startWork();
  await write('one');
  const [first, second] = await Promise.all([publish({ pull_request: wanted }), publish({ pull_request: wanted })]);
  const [{ number, url } = {}] = [object(first)['pull_request'] as { number: number; url: string } | undefined];
  expect(object(first)).toEqual({ branch, complete: true, commit: expect.any(String), pull_request: { number: expect.any(Number), url: expect.stringContaining('/acme/shop/pull/') } });
  expect(object(second)).toEqual(object(first));
  expect(pullRequests(branch)).toMatchObject([{ ...wanted, base: 'main', draft: false }]);

  await write('two');
  const again = await publish({ pull_request: { title: 'Sell tea', base: 'feature', draft: true } });
  expect(object(again)).toMatchObject({ branch, pull_request: { number, url } });
  expect(pullRequests(branch)).toMatchObject([{ title: 'Sell tea', body: '', base: 'feature', draft: false }]);
  expect(await published()).toBe('two');
  expect(object(await publish({}))['pull_request']).toBeNull();
  expect(object(await call('GET', path))['pull_requests']).toEqual([{ branch, number, url }]);
});

test('publishing again after a failure of the host creates one branch and one pull request', async () => {
  const { path, branch, publish, write, published } = await startWork();
  await write('one');
  host.api.faults.plan({ act: answerWith({ status: 500 }), times: 1, when: ({ method, path: asked }) => method === 'POST' && asked.endsWith('/pulls') });
  const failed = object(await publish({ pull_request: wanted }));
  const commit = (await git(join(folder, 'acme/shop.git'), ['rev-parse', branch])).trim();
  expect(failed).toMatchObject({ status: 502, code: 'provider_failed', pushed: { branch, commit } });
  expect(await published()).toBe('one');
  expect(object(await call('GET', path))['pull_requests']).toEqual([]);
  expect((await publish({ pull_request: wanted })).status).toBe(200);
  expect(pullRequests(branch)).toHaveLength(1);
});

test('a refused pull request returns the reason, and an unknown base branch changes nothing', async () => {
  const { branch, publish, write } = await startWork();
  await write('one');
  expect(object(await publish({ pull_request: { ...wanted, base: 'none' } }))).toMatchObject({ status: 404, code: 'branch_not_found', branch: 'none' });
  expect(await git(join(folder, 'acme/shop.git'), ['for-each-ref', `refs/heads/${branch}`])).toBe('');
  host.api.pullRequests.allowed = false;
  const refused = { status: 409, code: 'pull_request_refused', repository: 'acme/shop', branch, reason: { code: 'pull_request_forbidden' } };
  expect(object(await publish({ pull_request: wanted }))).toMatchObject(refused);
  host.api.pullRequests.allowed = true;
  expect((await publish({ pull_request: { body: 'without a title' } })).status).toBe(422);
  expect((await publish({ pull_request: { title: 'two\nlines' } })).status).toBe(422);
});

test("uncommitted changes are committed in the name of the key's user", async () => {
  const made = await runExecutable(['keys', 'create', 'ann', '--user', 'ann'], { SKEP_DATA_DIR: server.dataDir });
  const { branch, publish, write } = await startWork(createClient(server.url, made.stdout.trim()));
  await write('one');
  expect((await publish({})).status).toBe(200);
  expect(await git(join(folder, 'acme/shop.git'), ['log', '-1', '--format=%an %ae', branch])).toBe('ann ann@users.noreply.invalid\n');
});

test('skep publish opens a pull request, and needs --title', async () => {
  const { path, branch, write } = await startWork();
  await write('one');
  const skep = (...args: string[]) => runSkep('publish', path.split('/').at(-1) ?? '', ...args);
  await expect(skep('--pull-request', '--draft')).rejects.toMatchObject({ stderr: expect.stringContaining('--title') });
  expect((await skep('--title', 'By hand', '--body', 'x', '--base', 'feature', '--draft')).stdout).toMatch(/^skep\/\S+ [0-9a-f]{40}\nhttp:\S+\/pull\/\d+\n$/u);
  expect(pullRequests(branch)).toMatchObject([{ title: 'By hand', body: 'x', base: 'feature', draft: true }]);
});

test('/publish with a title opens a pull request in a chat', async () => {
  const { path, branch, write } = await startWork(call, 'coder');
  await write('one');
  const chat = talk(createApi({ url: server.url, key }), path.split('/').at(-1) ?? '');
  chat.type('/publish Sell coffee');
  await chat.sees('Its pull request: http');
  chat.end();
  await chat.done;
  expect(pullRequests(branch)).toMatchObject([{ title: 'Sell coffee' }]);
});

test('skep repositories lists repositories and branches', async () => {
  expect((await runSkep('repositories', 'search', 'SHOP')).stdout).toBe('NAME       PROVIDER\nacme/shop  github\n');
  expect((await runSkep('repositories', 'branches', 'acme/shop')).stdout).toMatch(/^NAME +COMMIT +DEFAULT\nfeature +[0-9a-f]{40} +no\nmain +[0-9a-f]{40} +yes\n/u);
  const more = Array.from({ length: 100 }, (_, number) => `create refs/heads/more-${number} main\n`).join('');
  await git(join(folder, 'acme/shop.git'), ['update-ref', '--stdin'], more);
  expect((await runSkep('repositories', 'branches', 'acme/shop')).stdout).toContain('more-99');
});
