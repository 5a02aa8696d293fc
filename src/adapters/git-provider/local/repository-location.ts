import { lstat, stat } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';
import { parseRepositoryName } from '../../../domain/repository-name.ts';
import { failed, notFound } from './failures.ts';
import { confine, type Confined, realPathOf } from './root-folder.ts';

/** A repository in the file system; all paths are real ones inside the root. */
export interface LocalRepository {
  /** The last segment of its path, without `.git`. */
  readonly name: string;
  /** Its path below the root. */
  readonly path: string;
  /** Where its own HEAD is. */
  readonly gitDir: string;
  /** Where its branches and objects are: another folder than `gitDir` for a linked work tree. */
  readonly commonDir: string;
  readonly root: Confined;
}

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

interface GitDirs {
  readonly gitDir: string;
  readonly commonDir: string;
}

const linkLimitBytes = 8192;

/** The git folders of a work tree or a bare repository at a real path; null where there is no repository. */
async function findGitDirs(root: Confined, folder: string): Promise<GitDirs | null> {
  return (await ofWorkTree(root, folder)) ?? (await ofGitDir(root, folder));
}

async function ofWorkTree(root: Confined, folder: string): Promise<GitDirs | null> {
  const dotGit = join(folder, '.git');
  const kind = await kindOf(dotGit);
  if (kind === 'none') return null;
  const gitDir = kind === 'file' ? await followLink(root, folder, dotGit) : await root.resolve(dotGit);
  if (gitDir === null) throw leadsOut();
  return await ofGitDir(root, gitDir);
}

/** A `.git` file names the git folder of a linked work tree or of a submodule. */
async function followLink(root: Confined, folder: string, dotGit: string): Promise<string | null> {
  const target = /^gitdir: (.+?)\r?\n*$/su.exec((await readText(root, dotGit)) ?? '')?.[1];
  return target === undefined ? null : await root.resolve(resolve(folder, target));
}

async function ofGitDir(root: Confined, gitDir: string): Promise<GitDirs | null> {
  const [head, commonDir] = await Promise.all([kindOf(join(gitDir, 'HEAD')), commonDirOf(root, gitDir)]);
  if (head === 'none') return null;
  const kinds = await Promise.all(['objects', 'refs'].map((name) => kindOf(join(commonDir, name))));
  return kinds.every((kind) => kind === 'folder') ? { gitDir, commonDir } : null;
}

async function commonDirOf(root: Confined, gitDir: string): Promise<string> {
  const text = await readText(root, join(gitDir, 'commondir'));
  if (text === null) return gitDir;
  const commonDir = await root.resolve(resolve(gitDir, text.trimEnd()));
  if (commonDir === null) throw leadsOut();
  return commonDir;
}

async function readText(root: Confined, path: string): Promise<string | null> {
  return (await root.read(path, linkLimitBytes))?.toString('utf8') ?? null;
}

// A legacy HEAD may be a link to a branch that has no commit yet, so a link that leads nowhere counts as a file.
async function kindOf(path: string): Promise<'none' | 'file' | 'folder'> {
  const stats = await stat(path)
    .catch(() => lstat(path))
    .catch(() => null);
  if (stats === null) return 'none';
  return stats.isDirectory() ? 'folder' : 'file';
}

// One answer for a folder outside and for one that is missing, so that nobody can ask what exists outside.
function leadsOut(): Error {
  return failed("the repository's git folder is missing or lies outside the root folder");
}
