import { expect, test } from 'vitest';
import type { GitProvider } from '../../../src/ports/git-provider.ts';
import { createMemoryGitProvider } from '../../doubles/memory/index.ts';
import { createOne, plain, shop, until } from './world.ts';

test('a conversation uses the repository that was checked, even if its name later means another one', async () => {
  const vault = { path: 'vault/keys', defaultBranch: 'main', files: [{ path: '.skep/microagents/secret.md', createdAt: 1 }] };
  const memory = createMemoryGitProvider({ repositories: [shop, vault] });
  let nickname = 'acme/shop';
  const real = (name: string): string => (name === 'acme/nickname' ? nickname : name);
  const provider: GitProvider = {
    ...memory,
    find: (name, signal) => memory.find(real(name), signal),
    remote: (name, signal) => memory.remote(real(name), signal),
    listFiles: (name, query, signal) => memory.listFiles(real(name), query, signal),
  };
  const w = createOne({ providers: [provider], agent: null });
  const { conversation: { id } } = await w.conversations.start('me', { ...plain, selectedRepository: 'acme/nickname', patterns: ['acme/*'] });
  nickname = 'vault/keys';
  const record = await until(() => w.store.conversations.find(id), (found) => found?.startStatus === 'READY' || found?.startStatus === 'ERROR');
  expect(record).toMatchObject({ startStatus: 'READY', selectedRepository: 'acme/nickname', repositoryPath: 'acme/shop' });
  expect(w.checkedOut).toEqual([expect.stringMatching(/^acme\/shop /)]);
  expect(record?.microagents?.map(({ path }) => path)).toEqual(['.skep/microagents/deploy/aws.md', '.skep/microagents/style.md']);
});
