import { hash } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { lstat, mkdir, mkdtemp, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { basename, isAbsolute, join } from 'node:path';
import { isFailure } from '../../../domain/failure.ts';
import { type GitCommand, type GitResult, makeGitFolder, privateGitConfig } from '../../shared/git-process.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { makeProcessFolder } from '../../shared/process-folder.ts';
import { createLazy } from '../../shared/single-flight.ts';
import { errorCode, ignoring } from '../../shared/system-errors.ts';
import { failed } from './local-git-failures.ts';
import { type Head, readHead, readShallow } from './repository-head.ts';
import type { ResolvedOptions } from './local-git-provider.ts';
import type { LocalRepository } from './repository-folder.ts';

export interface ObjectsRequest {
  readonly repository: LocalRepository;
  readonly oid: string;
  /** Where the history is cut off, as `readShallow` returns it. */
  readonly shallow: string;
}

/** Runs a command of git that reads the objects. */
export type ReadObjects = (
  command: Omit<GitCommand, 'folder' | 'environment'>, signal: AbortSignal, onOutput?: (chunk: Buffer) => void,
) => Promise<GitResult>;

/**
 * Runs a task that reads objects with git, in a private git folder that uses nothing else of the repository. Removes the folder afterwards.
 * Ends the task if it finds objects outside the root.
 */
export async function readObjects<T>(
  { temporaryFolder, git, maxOutputBytes }: ResolvedOptions,
  { repository, oid, shallow }: ObjectsRequest,
  signal: AbortSignal,
  task: (read: ReadObjects, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const objects = await listObjectFolders(repository);
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.adopt(await mkdtemp(join(temporaryFolder, 'skep-git-')), (path) => rm(path, { recursive: true, force: true }));
  await makeGitFolder(folder, oid, { shallow });
  const environment = { GIT_OBJECT_DIRECTORY: objects[0] };
  const read: ReadObjects = (command, within, onOutput) => git.run({ maxOutputBytes, ...command, folder, environment }, within, onOutput);
  const ending = new AbortController();
  const either = AbortSignal.any([signal, ending.signal]);
  const check = refuseOutsideObjects(repository, objects, either);
  const work = task(read, either);
  try {
    const [result] = await Promise.all([work, check]);
    return result;
  } finally {
    ending.abort();
    await Promise.allSettled([work, check]);
  }
}

/** A fetch runs git in the folder that it fetches from, so each repository gets a private folder with Skep's own configuration. */
export function createFetchFolders(temporaryFolder: string) {
  const parent = createLazy(() => makeProcessFolder(temporaryFolder, 'skep-git-remotes-'));
  const repositories = new KeyedMutex();

  async function folderOf({ gitDir, commonDir }: LocalRepository): Promise<string> {
    const folder = join((await parent()).path, hash('sha256', gitDir));
    // Made again each time, because other programs may clean temporary folders.
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await Promise.all(['objects', 'refs', 'packed-refs'].map((entry) =>
      symlink(join(commonDir, entry), join(folder, entry)).catch(ignoring('EEXIST'))));
    return folder;
  }

  async function make(repository: LocalRepository, signal: AbortSignal): Promise<string> {
    const objects = await listObjectFolders(repository);
    await Promise.all([refuseOutsideObjects(repository, objects, signal), refuseOutsideRefs(repository)]);
    const [head, shallow, folder] = await Promise.all([readHead(repository), readShallow(repository), folderOf(repository)]);
    // Git before 2.35 protects what is checked out only if the repository is not bare.
    await replaceFile(folder, 'config', privateGitConfig(head.oid, false));
    await linkWorkTrees(repository.commonDir, folder);
    await (shallow === '' ? rm(join(folder, 'shallow'), { force: true }) : replaceFile(folder, 'shallow', shallow));
    await replaceFile(folder, 'HEAD', headFile(head));
    return folder;
  }

  return {
    /** Returns the folder's absolute path. Its objects and branches are always those of the repository. Its HEAD is as of this call. */
    get: (repository: LocalRepository, signal: AbortSignal): Promise<string> =>
      repositories.runExclusive(repository.gitDir, () => make(repository, signal), signal),
    async remove(): Promise<void> {
      // A call that is still running would make its folder again.
      await repositories.settled();
      await (await parent.made())?.remove();
    },
  };
}

const maxWorkTrees = 1000;
// No linked work tree can have this name.
const mainName = '.main';
// Also what is checked out during a rebase or a bisection.
const headFiles = ['HEAD', 'rebase-merge', 'rebase-apply', 'BISECT_START'];

/**
 * Links the repository's work trees, as of this call, because git looks for them in the private folder: it refuses a push to a branch that
 * is checked out in one of them. The main one is linked too, because HEAD of the folder may be that of a linked one. A link may lead out of
 * the root: git only compares the names of branches there.
 */
async function linkWorkTrees(commonDir: string, folder: string): Promise<void> {
  const [from, to] = [join(commonDir, 'worktrees'), join(folder, 'worktrees')];
  const linked = await entriesOf(from);
  if (linked.length > maxWorkTrees) throw failed(`the repository has more than ${maxWorkTrees} work trees; remove some`);
  await mkdir(join(to, mainName), { recursive: true });
  const links = linked.map(({ name }) => [join(from, name), join(to, name)] as const);
  if (!(await isBare(commonDir))) {
    const files = [['commondir', '../..\n'], ['gitdir', `${commonDir}\n`]] as const;
    await Promise.all(files.map(([name, content]) => replaceFile(join(to, mainName), name, content)));
    links.push(...headFiles.map((name) => [join(commonDir, name), join(to, mainName, name)] as const));
  }
  await Promise.all(links.map(([target, link]) => symlink(target, link).catch(ignoring('EEXIST'))));
}

/** HEAD of a bare repository is not checked out. Only a repository with a work tree has an index. */
async function isBare(commonDir: string): Promise<boolean> {
  return basename(commonDir) !== '.git' && !(await stat(join(commonDir, 'index')).then(() => true, () => false));
}

/** Replaces the file in one step, because git may be reading it. */
async function replaceFile(folder: string, name: string, content: string): Promise<void> {
  const temporary = join(folder, `${name}.new`);
  await writeFile(temporary, content);
  await rename(temporary, join(folder, name));
}

/** Without a branch and a commit, HEAD names a branch that can't exist: then the folder has no default branch. */
function headFile({ branch, oid }: Head): string {
  if (branch === null && oid !== null) return `${oid}\n`;
  return `ref: refs/heads/${branch ?? '.invalid'}\n`;
}

/** Throws `provider_failed` if the branches and tags lie outside the root. Their files are not checked: they hold only object ids. */
async function refuseOutsideRefs({ root, commonDir }: LocalRepository): Promise<void> {
  for (const path of ['refs', 'packed-refs'].map((name) => join(commonDir, name))) {
    const isThere = await lstat(path).then(() => true, () => false);
    if (isThere && (await root.resolve(path)) === null) throw failed("the repository's branches lie outside the root folder");
  }
}

const alternatesLimitBytes = 64 * 1024;
const maxFolders = 32;

/**
 * Returns the real paths of the repository's object folders, including borrowed ones. Throws `provider_failed` if one is outside the root.
 */
async function listObjectFolders({ root, commonDir }: LocalRepository): Promise<readonly [string, ...string[]]> {
  const own = await root.resolve(join(commonDir, 'objects'));
  if (own === null) throw failed("the repository's object folder is missing or lies outside the root folder");
  const folders: [string, ...string[]] = [own];
  for (const folder of folders) {
    for (const line of linesOf((await root.read(join(folder, 'info', 'alternates'), alternatesLimitBytes)) ?? '')) {
      const borrowed = await root.resolve(isAbsolute(line) ? line : join(folder, line));
      if (borrowed === null) throw failed('the repository borrows objects from a folder that is missing or outside the root folder');
      if (!folders.includes(borrowed)) folders.push(borrowed);
      if (folders.length > maxFolders) throw failed(`the repository borrows objects from more than ${maxFolders} folders`);
    }
  }
  return folders;
}

function linesOf(alternates: Buffer | string): string[] {
  const lines = alternates.toString('utf8').split('\n');
  if (lines.some((line) => line.startsWith('"'))) throw failed('the repository borrows objects from a folder with a quoted name');
  return lines.filter((line) => line !== '' && !line.startsWith('#'));
}

const maxEntries = 1_000_000;
const foldersAtOnce = 16;
// The size of a folder grows with its entries: this is some hundred thousand of them.
const maxFolderBytes = 16 * 1024 * 1024;

/**
 * Throws `provider_failed` if a link among the objects leads out of the root, something is not a regular file, or there are too many
 * objects.
 */
async function refuseOutsideObjects({ root }: LocalRepository, objects: readonly string[], signal: AbortSignal): Promise<void> {
  const folders = [...objects];
  let entries = 0;

  async function check(folder: string): Promise<void> {
    for (const entry of await entriesOf(folder)) {
      signal.throwIfAborted();
      entries += 1;
      if (entries > maxEntries) throw tooManyObjects();
      const path = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isSymbolicLink()) {
        if ((await root.resolve(path)) === null) throw failed('a link among its objects leads out of the root folder');
      } else if (!entry.isFile()) throw failed('something among its objects is no regular file');
    }
  }

  // Loose objects lie in up to 256 folders, so several are checked together.
  while (folders.length > 0) await Promise.all(folders.splice(-foldersAtOnce).map(check));
}

/** Returns an empty list if the folder does not exist, because git may be packing its objects. */
async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  try {
    if ((await stat(folder)).size > maxFolderBytes) throw tooManyObjects();
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (isFailure(error)) throw error;
    if (errorCode(error) === 'ENOENT') return [];
    throw failed("the repository's objects can not be read", error);
  }
}

function tooManyObjects(): Error {
  return failed('the repository has too many object files; pack them with git gc');
}
