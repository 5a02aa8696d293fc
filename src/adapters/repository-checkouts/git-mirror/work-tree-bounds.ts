import { providerFailures } from '../../shared/provider-failures.ts';
import { splitAtNul } from '../../shared/git-process.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import type { GitRunner } from './git-runner.ts';
import { demandSuccess } from './git-failures.ts';
import type { Mirror } from './mirror.ts';

/** How deep the folders of a work tree may lie in each other. */
const maxDepth = 200;

/**
 * Throws `provider_failed` if the work tree of a commit has more files or bytes than is allowed, or lies too deep. A small repository can
 * hold a tree without end: the same folders and files may be in it again and again, and unpacking makes each of them. The list is read as
 * git writes it, and git is ended at the first entry beyond a bound.
 */
export async function refuseLargeWorkTree(
  git: GitRunner,
  { gitDir }: Mirror,
  oid: string,
  { maxFiles, maxWorkTreeBytes }: Pick<ResolvedOptions, 'maxFiles' | 'maxWorkTreeBytes'>,
  signal: AbortSignal,
): Promise<void> {
  const { tooLarge } = providerFailures(git.provider);
  let [files, bytes] = [0, 0];
  // Lines `MODE TYPE OID SIZE<tab>PATH`. A folder has no size.
  const count = splitAtNul((entry) => {
    const path = entry.slice(entry.indexOf('\t') + 1);
    files += 1;
    bytes += Number.parseInt(entry.slice(0, entry.indexOf('\t')).split(' ').at(-1) ?? '', 10) || 0;
    if (files > maxFiles) throw tooLarge(`${maxFiles} files and folders in a work tree`);
    if (bytes > maxWorkTreeBytes) throw tooLarge(`${maxWorkTreeBytes} bytes in a work tree`);
    if (path.split('/').length > maxDepth) throw tooLarge(`folders that lie ${maxDepth} deep in each other`);
  });
  const args = ['ls-tree', '-r', '-t', '-l', '-z', '--full-tree', oid];
  demandSuccess(await git.run({ args, folder: gitDir, environment: { GIT_DIR: gitDir } }, signal, count), git.provider);
}
