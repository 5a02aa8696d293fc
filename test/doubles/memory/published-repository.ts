import type { MemoryRepository } from './index.ts';
import { git, gitBytes } from '../../contracts/git-repository.ts';

/** Reads the default branch of a repository in the simplest way, with one log of all commits. */
export async function readPublished(gitDir: string, path: string): Promise<MemoryRepository> {
  const refs = await git(gitDir, ['for-each-ref', '--format=%(HEAD)%(objectname) %(refname:strip=2)', 'refs/heads']);
  const branches = [...refs.matchAll(/^(?<mark>.)(?<commit>[^ ]+) (?<name>.+)$/gmu)].map(({ groups }) => groups as Record<string, string>);
  const defaultBranch = branches.find(({ mark }) => mark === '*')?.['name'];
  if (defaultBranch === undefined) return { path, defaultBranch: null, files: [] };
  const listed = (await git(gitDir, ['ls-tree', '-r', '-z', 'HEAD'])).split('\0');
  const entries = listed.filter((entry) => entry.startsWith('100') && !entry.includes('\ufffd'));
  const dates = await firstDates(gitDir);
  const contents = await readBlobs(gitDir, entries.map((entry) => entry.split(/[ \t]/u)[2] ?? ''));
  const files = entries.map((entry, index) => {
    const name = entry.slice(entry.indexOf('\t') + 1);
    return { path: name, createdAt: (dates.get(name) ?? Number.NaN) * 1000, content: contents[index]! };
  });
  return { path, defaultBranch, branches: branches.map(({ name = '', commit = '' }) => ({ name, commit })), files };
}

/** Returns the contents with these ids, in this order. */
async function readBlobs(gitDir: string, ids: readonly string[]): Promise<readonly Buffer[]> {
  const output = await gitBytes(gitDir, ['cat-file', '--batch=%(objectsize)'], ids.map((id) => `${id}\n`).join(''));
  let at = 0;
  return ids.map(() => {
    const begin = output.indexOf('\n', at) + 1;
    const end = begin + Number(output.toString('latin1', at, begin));
    at = end + 1;
    return output.subarray(begin, end);
  });
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
