import assert from 'node:assert/strict';
import { isAbsolute } from 'node:path';
import { assertFails } from './contract.ts';
import type { StageCase } from './git-provider-harness.ts';
import { git } from './git-repository.ts';

const first = { id: 'first', at: 1_600_000_000, files: [['a', '1'] as const] };
const second = { id: 'second', at: 1_600_000_010, files: [['b', '1'] as const] };

export const remoteCases: readonly StageCase[] = [
  [
    'returns the URL that git fetches from, without a credential in it',
    async ({ publish, provider, traits }) => {
      const repository = await publish({ commits: [first] });
      const { url, authorization } = await provider.remote((await provider.find(repository)).path);
      assert.deepEqual(await provider.remote(repository), { url, authorization });
      if (traits.remote === 'folder') {
        assert.ok(isAbsolute(url));
        assert.equal(authorization, null);
        return;
      }
      const { protocol, username, password, pathname, search, hash } = new URL(url);
      assert.match(protocol, /^https?:$/u);
      for (const [part, value] of Object.entries({ username, password, search, hash })) {
        assert.ok(value === '', `the URL has a ${part}, which may contain a credential`);
      }
      assert.ok(pathname.endsWith(`/${repository}.git`), `the path of the URL is ${pathname}, which does not end with /${repository}.git`);
      if (authorization !== null) assert.match(authorization, /^[A-Za-z]+ [\u0021-\u007e]+$/u);
    },
  ],
  [
    'says that a repository is archived, if its host can archive it',
    async ({ publish, provider, archive }) => {
      const repository = await publish({ commits: [first] });
      assert.ok((await provider.find(repository)).isArchived !== true, 'a repository is archived that nobody has archived');
      if (archive === undefined) return;
      await archive(repository);
      assert.equal((await provider.find(repository)).isArchived, true);
    },
  ],
  [
    'gives git an Authorization that the host accepts',
    async ({ publish, provider, acceptsGit }) => {
      const remote = await provider.remote((await provider.find(await publish({ commits: [first] }))).path);
      assert.ok(await acceptsGit(remote), `the host refuses git with ${remote.authorization === null ? 'no' : 'this'} Authorization`);
    },
  ],
  [
    'returns a folder with the current branches, if git fetches from a folder',
    async ({ publish, provider, traits }) => {
      if (traits.remote === 'url') return;
      const repository = await publish({ commits: [first, second], branches: { old: 'first' } });
      assert.deepEqual(await headsOf((await provider.remote(repository)).url), { main: '2', old: '1' });
      await publish({ commits: [first], defaultBranch: 'trunk' });
      assert.deepEqual(await headsOf((await provider.remote(repository)).url), { trunk: '1' });
      await publish({ commits: [] });
      assert.deepEqual(await headsOf((await provider.remote(repository)).url), {});
    },
  ],
  [
    'remote rejects with the reason of a signal that has fired',
    async ({ publish, provider }) => {
      const repository = await publish({ commits: [first] });
      const reason = new Error('the caller has left');
      const remote = provider.remote(repository, AbortSignal.abort(reason));
      await assertFails(remote, (error) => error === reason, 'remote rejects with the reason of the signal');
    },
  ],
];

/** Returns the number of commits by branch, including the checked out branch. */
async function headsOf(gitDir: string): Promise<Record<string, string>> {
  const refs = await git(gitDir, ['for-each-ref', '--format=%(refname:strip=2)', 'refs/heads']);
  const names = refs.split('\n').filter((name) => name !== '');
  const counts = names.map(async (name) => [name, (await git(gitDir, ['rev-list', '--count', `refs/heads/${name}`])).trim()] as const);
  if (names.length > 0) await git(gitDir, ['rev-parse', 'HEAD^{tree}']);
  return Object.fromEntries(await Promise.all(counts));
}
