import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { createGitLabProvider } from '../../../../src/adapters/git-provider/gitlab/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import { isMicroagentPath } from '../../../../src/domain/microagent.ts';
import { failureOf, pairs } from '../support.ts';

/**
 * Runs against a real host if the environment names a token and a repository that it may read.
 * Compares the provider's listing with what git finds in a clone.
 */
const {
  SKEP_TEST_GITLAB_TOKEN: token,
  SKEP_TEST_GITLAB_REPOSITORY: repository,
  SKEP_TEST_GITLAB_DIRECTORY: directory = '.skep/microagents',
  SKEP_TEST_GITLAB_URL: url = 'https://gitlab.com',
} = process.env;

if (token === undefined || repository === undefined) {
  const missing = 'SKEP_TEST_GITLAB_TOKEN and SKEP_TEST_GITLAB_REPOSITORY';
  process.stderr.write(`\nNOT RUN: the provider was not tried against a real GitLab, since ${missing} are not set.\n\n`);
  test.skip(`against the real host (set ${missing})`, () => undefined);
} else {
  const named = repository;
  const provider = createGitLabProvider({ url, token, clock: createSystemClock() });
  const query = { directory: () => directory, accepts: isMicroagentPath };

  test('check() succeeds with the real host', async () => {
    expect(await provider.check()).toMatchObject({ ok: true });
  });

  test('the real host returns `repository_not_found` for an unknown project', async () => {
    expect(await failureOf(provider.listFiles(`${named}-${Date.now()}`, query))).toMatch(/^repository_not_found: /u);
  });

  test('the real host returns the same listing as a clone, twice', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'skep-gitlab-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    await clone(`${url}/${named}.git`, folder, token);
    const expected = await filesOf(folder);
    const { path, defaultBranch } = await provider.find(named);
    expect([path.toLowerCase(), defaultBranch]).toEqual([named.toLowerCase(), (await git(folder, 'branch', '--show-current')).trim()]);
    for (let round = 0; round < 2; round += 1) expect(pairs(await provider.listFiles(named, query))).toEqual(expected);
  }, 300_000);
}

/** Clones without the token in an argument or a URL. */
async function clone(from: string, to: string, secret: string): Promise<void> {
  const credential = Buffer.from(`oauth2:${secret}`).toString('base64');
  const env = {
    PATH: process.env['PATH'],
    GIT_TERMINAL_PROMPT: '0',
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'http.extraHeader',
    GIT_CONFIG_VALUE_0: `Authorization: Basic ${credential}`,
  };
  await promisify(execFile)('git', ['clone', '--quiet', '--no-checkout', from, to], { env });
}

async function filesOf(folder: string): Promise<(readonly [string, number])[]> {
  const lines = (await git(folder, 'ls-tree', '-r', '-z', 'HEAD', '--', directory)).split('\0').filter((line) => line.startsWith('100'));
  const paths = lines.map((line) => line.slice(line.indexOf('\t') + 1)).filter((path) => isMicroagentPath(path));
  const dated = paths.map(async (path) => {
    const history = await git(folder, '--literal-pathspecs', 'log', '--format=%ct', 'HEAD', '--', path);
    return [path, Number(history.trim().split('\n').at(-1))] as const;
  });
  return (await Promise.all(dated)).toSorted(([a], [b]) => (a < b ? -1 : Number(a > b)));
}

async function git(folder: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('git', ['-C', folder, ...args], { maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}
