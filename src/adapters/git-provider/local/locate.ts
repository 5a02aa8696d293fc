import { basename, join, relative, resolve, sep } from 'node:path';
import { parseRepositoryName } from '../../../domain/repository-name.ts';
import { confine, realPathOf, type Confined } from './confined.ts';
import { failed, notFound } from './failures.ts';
import { findGitDirs } from './git-dir.ts';
import type { LocalRepository } from './repository.ts';

const bareEnding = '.git';

/**
 * Finds a repository by its path below the root: as it is asked for, else the bare folder of that name with `.git`,
 * else the root itself where that is a repository of this name.
 */
export async function locate(rootFolder: string, repository: string): Promise<LocalRepository> {
  const parsed = parseRepositoryName(repository);
  if (!parsed.ok) throw notFound(repository);
  const realRoot = await realPathOf(rootFolder);
  if (realRoot === null) throw failed('the root folder of the repositories does not exist or can not be read');
  const root = confine(realRoot);
  const asked = join(realRoot, ...parsed.segments);
  const found =
    (await repositoryAt(root, realRoot, asked)) ?? (await repositoryAt(root, realRoot, asked + bareEnding));
  if (found !== null) return found;
  const isRoot = repository === basename(realRoot) || repository === basename(resolve(rootFolder));
  const itself = isRoot ? await repositoryAt(root, realRoot, realRoot) : null;
  if (itself === null) throw notFound(repository);
  return itself;
}

async function repositoryAt(root: Confined, realRoot: string, path: string): Promise<LocalRepository | null> {
  const folder = await root.resolve(path);
  if (folder === null) return null;
  const dirs = await findGitDirs(root, folder);
  if (dirs === null) return null;
  return { name: nameOf(folder), path: await pathOf(realRoot, folder), ...dirs, root };
}

function nameOf(folder: string): string {
  const last = basename(folder);
  return last.endsWith(bareEnding) && last !== bareEnding ? last.slice(0, -bareEnding.length) : last;
}

/** Without `.git`, unless something else has the shorter path. */
async function pathOf(realRoot: string, folder: string): Promise<string> {
  if (folder === realRoot) return basename(realRoot);
  const path = relative(realRoot, folder).split(sep).join('/');
  if (!path.endsWith(bareEnding) || basename(path) === bareEnding) return path;
  const shorter = folder.slice(0, -bareEnding.length);
  return (await realPathOf(shorter)) === null ? path.slice(0, -bareEnding.length) : path;
}
