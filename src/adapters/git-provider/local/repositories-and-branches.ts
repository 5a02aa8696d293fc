import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isFailure } from '../../../domain/failure.ts';
import { pageOf } from '../../../domain/page.ts';
import { parseRepositoryName } from '../../../domain/repository-name.ts';
import type { Branch, HostPage, HostPageRequest, SearchHit } from '../../../ports/git-provider.ts';
import { requireSuccess, failed, tooLarge } from './local-git-failures.ts';
import type { ResolvedOptions } from './local-git-provider.ts';
import { type LocalRepository, openRoot, repositoryAt, type RootFolder, type ServedFolder } from './repository-folder.ts';

/** Finds the repositories whose path contains the text, in any case. */
export async function searchLocal(
  served: ServedFolder, query: string, page: HostPageRequest, signal: AbortSignal,
): Promise<HostPage<SearchHit>> {
  const wanted = query.toLowerCase();
  const paths = (await listRepositories(served, signal)).filter((path) => path.toLowerCase().includes(wanted));
  return pageAfter(paths.map((path) => ({ path })), ({ path }) => path, page);
}

const maxFolders = 20_000;
const foldersAtOnce = 16;

/** Returns the paths of all repositories below the root, or of the root itself if it is one. Does not search inside repositories. */
async function listRepositories(served: ServedFolder, signal: AbortSignal): Promise<readonly string[]> {
  const root = await openRoot(served);
  const [folders, paths]: [string[], string[]] = [[root.path], []];
  let seen = 0;

  const visit = async (folder: string): Promise<void> => {
    signal.throwIfAborted();
    if (!root.contains(folder)) return;
    seen += 1;
    if (seen > maxFolders) throw tooLarge(`${maxFolders} folders below the root folder`);
    const entries = await foldersIn(folder);
    if (entries === null && folder === root.path) throw failed('the root folder of the repositories can not be read');
    const found = await inspectFolder(root, folder);
    if (found === 'no repository') folders.push(...(entries ?? []));
    else if (found !== 'unusable' && parseRepositoryName(found.path).ok) paths.push(found.path);
  };

  while (folders.length > 0) await Promise.all(folders.splice(-foldersAtOnce).map(visit));
  return paths;
}

/** A repository is unusable if it is broken, or leads out of the root. */
async function inspectFolder(root: RootFolder, folder: string): Promise<LocalRepository | 'unusable' | 'no repository'> {
  try {
    return (await repositoryAt(root, folder)) ?? 'no repository';
  } catch (error) {
    if (isFailure(error)) return 'unusable';
    throw error;
  }
}

/** Without links, because they may form a circle. Null if the folder can't be read. */
async function foldersIn(folder: string): Promise<readonly string[] | null> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => null);
  return entries?.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name)) ?? null;
}

/** Lists the branches of a git folder that `createFetchFolders` made. */
export async function listLocalBranches(
  { git, maxOutputBytes }: ResolvedOptions, folder: string, page: HostPageRequest, signal: AbortSignal,
): Promise<HostPage<Branch>> {
  const args = ['for-each-ref', '--format=%(objectname) %(refname:strip=2)', 'refs/heads'];
  const exit = await git.run({ args, folder, maxOutputBytes }, signal);
  requireSuccess(exit);
  const lines = exit.stdout.split('\n').slice(0, -1);
  const branches = lines.map((line) => ({ name: line.slice(line.indexOf(' ') + 1), commit: line.slice(0, line.indexOf(' ')) }));
  return pageAfter(branches, ({ name }) => name, page);
}

/** Sorts by name, so that an item that always exists appears exactly once, even if others come and go between two pages. */
function pageAfter<T>(all: readonly T[], nameOf: (item: T) => string, { after, limit }: HostPageRequest): HostPage<T> {
  const later = all.filter((item) => after === null || nameOf(item) > after).toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  return pageOf(later, limit, nameOf);
}
