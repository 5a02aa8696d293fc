import type { MemoryRepository } from './index.ts';
import { git, readBlob } from '../../contracts/git-repository.ts';

/** Reads the default branch of a repository in the simplest way, with one log of all commits. */
export async function readPublished(gitDir: string, path: string): Promise<MemoryRepository> {
  const branch = (await git(gitDir, ['symbolic-ref', '--short', 'HEAD'])).trim();
  const refs = (await git(gitDir, ['for-each-ref', '--format=%(objectname) %(refname:strip=2)', 'refs/heads'])).split('\n').slice(0, -1);
  const branches = refs.map((ref) => ({ commit: ref.slice(0, ref.indexOf(' ')), name: ref.slice(ref.indexOf(' ') + 1) }));
  if (!branches.some(({ name }) => name === branch)) return { path, defaultBranch: null, files: [] };
  const entries = (await git(gitDir, ['ls-tree', '-r', '-z', 'HEAD'])).split('\0').filter((entry) => entry.startsWith('100'));
  const dates = await firstDates(gitDir);
  const contents = new Map<string, Promise<Buffer>>();
  const files = entries.flatMap((entry) => {
    const name = entry.slice(entry.indexOf('\t') + 1);
    if (name.includes('\ufffd')) return [];
    const blobId = entry.split(/[ \t]/u)[2] ?? '';
    const content = contents.get(blobId) ?? readBlob(gitDir, blobId);
    contents.set(blobId, content);
    return [{ path: name, createdAt: (dates.get(name) ?? Number.NaN) * 1000, content }];
  });
  const read = files.map(async (file) => ({ ...file, content: await file.content }));
  return { path, defaultBranch: branch, branches, files: await Promise.all(read) };
}

/** Returns the date of each path's first commit, which is the last one in the log that changes the path. */
async function firstDates(gitDir: string): Promise<ReadonlyMap<string, number>> {
  const log = await git(gitDir, ['log', '--full-history', '-m', '--no-renames', '--name-only', '-z', '--format=/%ct', 'HEAD']);
  const dates = new Map<string, number>();
  let seconds = 0;
  for (const entry of log.split('\0')) {
    if (entry.startsWith('/')) seconds = Number(entry.slice(1));
    else dates.set(entry.replace(/^\n/u, ''), seconds);
  }
  return dates;
}
