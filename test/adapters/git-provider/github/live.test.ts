import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGitHubProvider } from '../../../../src/adapters/git-provider/github/index.ts';
import { createLocalGitProvider } from '../../../../src/adapters/git-provider/local/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import { failureOf, list, recordingCache } from '../support.ts';

const token = process.env['SKEP_TEST_GITHUB_TOKEN'];
/** `owner/name` of a public repository that has files below `.skep/microagents`. It is only read. */
const repository = process.env['SKEP_TEST_GITHUB_REPOSITORY'];
const url = process.env['SKEP_TEST_GITHUB_URL'];

if (token === undefined || repository === undefined) {
  process.stderr.write('\n*** GitHub itself was NOT asked: set SKEP_TEST_GITHUB_TOKEN and SKEP_TEST_GITHUB_REPOSITORY for that. ***\n\n');
}

/** Clones the repository without the token in an argument. The folder is removed after the test. */
async function clone(from: string, credential: string): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'skep-github-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const basic = Buffer.from(`x-access-token:${credential}`).toString('base64');
  const config = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'http.extraHeader', GIT_CONFIG_VALUE_0: `Authorization: Basic ${basic}` };
  const env = { ...process.env, ...config, GIT_TERMINAL_PROMPT: '0' };
  await promisify(execFile)('git', ['clone', '--quiet', '--bare', from, join(root, 'clone')], { env });
  return root;
}

describe.skipIf(token === undefined || repository === undefined)('GitHub itself', () => {
  const [name, credential] = [repository ?? '', token ?? ''];
  const options = { clock: createSystemClock(), ...(url === undefined ? {} : { url }) };

  test('returns the same listing as a clone, with a token, from the cache, and without a token', async () => {
    const listingCache = recordingCache();
    const first = createGitHubProvider({ ...options, token: credential, listingCache });
    const root = await clone(`https://${first.hosts[0]}/${name}.git`, credential);
    const expected = await list(createLocalGitProvider({ root }), 'clone');
    expect(expected.length).toBeGreaterThan(0);
    expect(await list(first, name)).toEqual(expected);
    expect(await list(createGitHubProvider({ ...options, token: credential, listingCache }), name)).toEqual(expected);
    expect(await list(createGitHubProvider(options), name)).toEqual(expected);
    expect(await first.check()).toMatchObject({ ok: true });
  });

  test('returns `repository_not_found` for a repository that does not exist', async () => {
    const provider = createGitHubProvider({ ...options, token: credential });
    expect(await failureOf(provider.find(`${name}-that-nobody-has-made`))).toMatch(/^repository_not_found: /u);
  });
});
