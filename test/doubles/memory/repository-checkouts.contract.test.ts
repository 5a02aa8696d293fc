import { describe, test } from 'vitest';
import { createMemoryCheckouts, type MemoryFile } from './index.ts';
import { git } from '../../contracts/git-repository.ts';
import { repositoryCheckoutsContract } from '../../contracts/repository-checkouts.ts';
import type { CheckoutSource, RepositoryCheckoutsHarness } from '../../contracts/repository-checkouts-harness.ts';

async function source(repository: string): Promise<CheckoutSource> {
  return { provider: 'memory', repository, remote: { url: `https://memory.invalid/${repository}.git`, authorization: null } };
}

async function createHarness(): Promise<RepositoryCheckoutsHarness> {
  const checkouts = createMemoryCheckouts();
  return {
    checkouts,
    traits: { workTree: 'files', origin: 'none', access: 'guarded' },
    async publish(gitDir, name) {
      const names = (await git(gitDir, ['for-each-ref', '--format=%(refname:strip=2)', 'refs/heads'])).split('\n').filter((line) => line !== '');
      const branches = Object.fromEntries(await Promise.all(names.map(async (branch) => [branch, await filesOf(gitDir, branch)] as const)));
      const head = (await git(gitDir, ['symbolic-ref', '--short', 'HEAD'])).trim();
      checkouts.put(name, { defaultBranch: names.includes(head) ? head : null, branches });
      return await source(name);
    },
    missing: source,
    async refused(name, refuses) {
      checkouts.put(name, { defaultBranch: null, branches: {}, refuses });
      return await source(name);
    },
    close: () => checkouts.close(),
  };
}

async function filesOf(gitDir: string, branch: string): Promise<Record<string, MemoryFile>> {
  const lines = (await git(gitDir, ['ls-tree', '-r', '-z', branch])).split('\0').filter((line) => line !== '');
  const entries = lines.map(async (line): Promise<[string, MemoryFile]> => {
    const [mode, , oid = ''] = line.slice(0, line.indexOf('\t')).split(' ');
    const path = line.slice(line.indexOf('\t') + 1);
    const text = await git(gitDir, ['cat-file', 'blob', oid]);
    if (mode === '120000') return [path, { link: text }];
    return [path, mode === '100755' ? { executable: text } : text];
  });
  return Object.fromEntries(await Promise.all(entries));
}

describe('Checkout contract: in memory', () => {
  for (const contractCase of repositoryCheckoutsContract(createHarness)) test(contractCase.name, () => contractCase.run());
});
