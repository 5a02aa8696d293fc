import { expect, test } from 'vitest';
import { Microagents } from '../../src/application/microagents/list-microagents.ts';
import { Repositories } from '../../src/application/repositories/repositories.ts';
import type { GitProvider } from '../../src/ports/git-provider.ts';
import { createMemoryGitProvider } from '../doubles/memory/index.ts';

test('the repository that was compared with the patterns is the one that is listed, by whatever name it was asked for', async () => {
  const memory = createMemoryGitProvider({ repositories: [{ path: 'acme/shop', defaultBranch: 'main', files: [] }] });
  const listed: string[] = [];
  const provider: GitProvider = {
    ...memory,
    find: (_name, signal) => memory.find('acme/shop', signal),
    listFiles: (name, query, signal) => (listed.push(name), memory.listFiles(name, query, signal)),
  };
  const microagents = new Microagents(new Repositories([provider]), 'skep');
  expect(await microagents.list('acme/old-name', ['acme/*'])).toEqual([]);
  await expect(microagents.list('acme/old-name', ['other/*'])).rejects.toMatchObject({ code: 'repository_not_found' });
  expect(listed).toEqual(['acme/shop']);
});

test('without patterns the host is asked for the listing alone', async () => {
  const memory = createMemoryGitProvider({ repositories: [{ path: 'acme/shop', defaultBranch: 'main', files: [] }] });
  let asked = 0;
  const provider: GitProvider = { ...memory, find: (name, signal) => (asked += 1, memory.find(name, signal)) };
  expect(await new Microagents(new Repositories([provider]), 'skep').list('acme/shop', null)).toEqual([]);
  expect(asked).toBe(0);
});
