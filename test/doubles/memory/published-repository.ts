import type { MemoryRepository } from './index.ts';
import { git } from '../../contracts/git-repository.ts';

/** What a repository has on its default branch, found out in the plainest way: one file after the other. */
export async function readPublished(gitDir: string, path: string): Promise<MemoryRepository> {
  const branch = (await git(gitDir, ['symbolic-ref', '--short', 'HEAD'])).trim();
  const branches = await git(gitDir, ['for-each-ref', '--format=%(refname)', `refs/heads/${branch}`]);
  if (branches === '') return { path, defaultBranch: null, files: [] };
  const entries = (await git(gitDir, ['ls-tree', '-r', '-z', 'HEAD'])).split('\0').filter((entry) => entry.startsWith('100'));
  const files = [];
  for (const entry of entries) {
    const name = entry.slice(entry.indexOf('\t') + 1);
    if (name.includes('\ufffd')) continue;
    files.push({ path: name, createdAt: (await firstDateOf(gitDir, name)) * 1000 });
  }
  return { path, defaultBranch: branch, files };
}

async function firstDateOf(gitDir: string, path: string): Promise<number> {
  const args = ['--literal-pathspecs', 'log', '--full-history', '-m', '--format=%ct', 'HEAD', '--', path];
  return Number((await git(gitDir, args)).trim().split('\n').at(-1));
}
