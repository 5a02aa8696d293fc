import type { Branch, HostPage, HostPageRequest, ListedRepository } from '../../../ports/git-provider.ts';
import { gitEnvironment, runGit } from '../../shared/git-process.ts';
import { demandSuccess, failed, tooLarge } from './local-git-failures.ts';
import type { ResolvedOptions } from './local-git-provider.ts';
import { listRepositories } from './repository-location.ts';

/** Finds the repositories whose path has the text in it, in any case. */
export async function searchLocal(
  root: string, query: string, page: HostPageRequest, signal: AbortSignal,
): Promise<HostPage<ListedRepository>> {
  const wanted = query.toLowerCase();
  const paths = (await listRepositories(root, signal)).filter((path) => path.toLowerCase().includes(wanted));
  return pageAfter(paths.map((path) => ({ path })), ({ path }) => path, page);
}

/** Lists the branches of a git folder that `createFetchFolders` made. */
export async function listLocalBranches(
  { gitBinary: binary, maxOutputBytes }: ResolvedOptions, folder: string, page: HostPageRequest, signal: AbortSignal,
): Promise<HostPage<Branch>> {
  const args = ['for-each-ref', '--format=%(objectname) %(refname:strip=2)', 'refs/heads'];
  const limit = { bytes: maxOutputBytes, failure: () => tooLarge(`${maxOutputBytes} bytes of branches`) };
  const chunks: Buffer[] = [];
  const command = { binary, args, folder, environment: gitEnvironment({ GIT_DIR: folder }), failed };
  demandSuccess(await runGit(command, limit, signal, (chunk) => chunks.push(chunk)));
  const lines = Buffer.concat(chunks).toString('utf8').split('\n').slice(0, -1);
  const branches = lines.map((line) => ({ name: line.slice(line.indexOf(' ') + 1), commit: line.slice(0, line.indexOf(' ')) }));
  return pageAfter(branches, ({ name }) => name, page);
}

/** Sorts by name, so that what is there all the time is seen once, whatever comes and goes meanwhile. */
function pageAfter<T>(all: readonly T[], nameOf: (item: T) => string, { after, limit }: HostPageRequest): HostPage<T> {
  const later = all.filter((item) => after === null || nameOf(item) > after).toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const items = later.slice(0, limit);
  const last = items.at(-1);
  return { items, next: later.length > limit && last !== undefined ? nameOf(last) : null };
}
