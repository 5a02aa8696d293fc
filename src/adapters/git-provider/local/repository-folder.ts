import { constants } from 'node:fs';
import { type FileHandle, lstat, open, realpath, stat } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';
import { isFailure } from '../../../domain/failure.ts';
import { parseRepositoryName } from '../../../domain/repository-name.ts';
import { isInside } from '../../shared/is-inside.ts';
import { errorCode } from '../../shared/system-errors.ts';
import { failed, notFound } from './local-git-failures.ts';

export interface ServedFolder {
  /** The folder that contains the repositories. */
  readonly root: string;
  /** Folders that are never served, nor anything in them, wherever the root is. */
  readonly excludedFolders?: readonly string[];
}

/** A repository in the file system; all paths are real ones inside the root. */
export interface LocalRepository extends GitFolders {
  /** The last segment of its path, without `.git`. */
  readonly name: string;
  /** Its path below the root. */
  readonly path: string;
  readonly root: RootFolder;
}

interface GitFolders {
  /** Where its own HEAD is. */
  readonly gitDir: string;
  /** Where its branches and objects are: another folder than `gitDir` for a linked work tree. */
  readonly commonDir: string;
}

const bareSuffix = '.git';

/** Looks for the folder, then for the folder with `.git` added, then for the root itself by its name. Throws `repository_not_found`. */
export async function findRepository(served: ServedFolder, repository: string): Promise<LocalRepository> {
  const parsed = parseRepositoryName(repository);
  if (!parsed.ok) throw notFound(repository);
  const root = await openRoot(served);
  const asked = join(root.path, ...parsed.segments);
  const isRoot = [basename(root.path), basename(resolve(served.root))].includes(repository);
  for (const path of [asked, asked + bareSuffix, ...(isRoot ? [root.path] : [])]) {
    const found = await repositoryAt(root, path);
    if (found !== null) return found;
  }
  throw notFound(repository);
}

export async function repositoryAt(root: RootFolder, path: string): Promise<LocalRepository | null> {
  const folder = await root.resolve(path);
  if (folder === null) return null;
  const folders = (await gitFoldersOfWorkTree(root, folder)) ?? (await gitFoldersOf(root, folder));
  if (folders === null) return null;
  return { name: withoutSuffix(basename(folder)), path: await pathOf(root.path, folder), ...folders, root };
}

function withoutSuffix(name: string): string {
  return name.endsWith(bareSuffix) && name !== bareSuffix ? name.slice(0, -bareSuffix.length) : name;
}

/** Returns the path without `.git`, unless something else has the shorter path. */
async function pathOf(realRoot: string, folder: string): Promise<string> {
  if (folder === realRoot) return basename(realRoot);
  const path = relative(realRoot, folder).split(sep).join('/');
  const shorter = withoutSuffix(basename(folder));
  if (shorter === basename(folder) || (await realPathOf(join(folder, '..', shorter))) !== null) return path;
  return path.slice(0, -bareSuffix.length);
}

async function gitFoldersOfWorkTree(root: RootFolder, folder: string): Promise<GitFolders | null> {
  const dotGit = join(folder, '.git');
  const kind = await kindOf(dotGit);
  if (kind === 'none') return null;
  // A file names the git folder of a linked work tree or of a submodule.
  const path = kind === 'file' ? /^gitdir: (.+?)\r?\n*$/su.exec((await readText(root, dotGit)) ?? '')?.[1] : dotGit;
  const gitDir = path === undefined ? null : await root.resolve(resolve(folder, path));
  if (gitDir === null) throw outsideRoot();
  return await gitFoldersOf(root, gitDir);
}

async function gitFoldersOf(root: RootFolder, gitDir: string): Promise<GitFolders | null> {
  const [head, commonDir] = await Promise.all([kindOf(join(gitDir, 'HEAD')), commonDirOf(root, gitDir)]);
  if (head === 'none') return null;
  const kinds = await Promise.all(['objects', 'refs'].map((name) => kindOf(join(commonDir, name))));
  return kinds.every((kind) => kind === 'folder') ? { gitDir, commonDir } : null;
}

async function commonDirOf(root: RootFolder, gitDir: string): Promise<string> {
  const text = await readText(root, join(gitDir, 'commondir'));
  if (text === null) return gitDir;
  const commonDir = await root.resolve(resolve(gitDir, text.trimEnd()));
  if (commonDir === null) throw outsideRoot();
  return commonDir;
}

const linkLimitBytes = 8192;

async function readText(root: RootFolder, path: string): Promise<string | null> {
  return (await root.read(path, linkLimitBytes))?.toString('utf8') ?? null;
}

// An old HEAD may be a symbolic link to a branch that has no commit yet, so a dangling link counts as a file.
async function kindOf(path: string): Promise<'none' | 'file' | 'folder'> {
  const stats = await stat(path).catch(() => lstat(path)).catch(() => null);
  if (stats === null) return 'none';
  return stats.isDirectory() ? 'folder' : 'file';
}

// The same message for a folder outside and for a missing one, so that nobody can find out what exists outside.
function outsideRoot(): Error {
  return failed("the repository's git folder is missing or lies outside the root folder");
}

export type RootFolder = Awaited<ReturnType<typeof openRoot>>;

/** Returns the folder of all repositories. No name or link may lead out of it or into an excluded folder. Throws if it does not exist. */
export async function openRoot({ root: folder, excludedFolders = [] }: ServedFolder) {
  const [root, ...excluded] = await Promise.all([folder, ...excludedFolders].map(realPathOf));
  if (root === undefined || root === null) throw failed('the root folder of the repositories does not exist or can not be read');
  const contains = (path: string): boolean =>
    isInside(path, root) && !excluded.some((each) => each !== null && isInside(path, each));
  return {
    /** Its real path. */
    path: root,
    /** Returns true if the real path is inside the root. */
    contains,
    /** Returns the real path of `path`. Null if it does not exist, or is outside the root. */
    async resolve(path: string): Promise<string | null> {
      const real = await realPathOf(path);
      return real !== null && contains(real) ? real : null;
    },
    /**
     * Null if there is no file. Throws `provider_failed` if it is outside the root, too large, or not a regular file. Never blocks on a
     * pipe.
     */
    async read(path: string, limitBytes: number): Promise<Buffer | null> {
      const real = await realPathOf(path);
      if (real === null) return null;
      if (!contains(real)) throw failed('a file of the repository is a link that leads out of the root folder');
      return await readRegular(real, limitBytes);
    },
  };
}

const gone = new Set<string | undefined>(['ENOENT', 'ENOTDIR']);
const unreachable = new Set<string | undefined>([...gone, 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'EPERM', 'ERR_INVALID_ARG_VALUE']);

/** Returns the real path of a path. Null if it can't be reached. */
async function realPathOf(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if (unreachable.has(errorCode(error))) return null;
    throw failed("the repository's files can not be read", error);
  }
}

const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

async function readRegular(path: string, limitBytes: number): Promise<Buffer | null> {
  let file: FileHandle | null = null;
  try {
    file = await open(path, flags);
    const stats = await file.stat();
    if (stats.isDirectory()) return null;
    if (!stats.isFile()) throw failed('a file of the repository is not a regular file');
    if (stats.size > limitBytes) throw failed(`a file of the repository is larger than ${limitBytes} bytes`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(stats.size), 0, stats.size, 0);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    if (isFailure(error)) throw error;
    if (gone.has(errorCode(error))) return null;
    throw failed('a file of the repository can not be read', error);
  } finally {
    await file?.close();
  }
}
