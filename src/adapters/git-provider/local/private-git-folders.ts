import { lstat, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bareConfig, type GitCommand, gitEnvironment, type OutputLimit } from '../../shared/git-process.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { makeProcessFolder, type ProcessFolder } from '../../shared/process-folder.ts';
import { failed, hasCode, tooLarge } from './failures.ts';
import { readHead, readShallow, type Head } from './head.ts';
import type { ResolvedOptions } from './local-git-provider.ts';
import { listObjectFolders, refuseOutsideObjects } from './object-folders.ts';
import type { LocalRepository } from './repository-location.ts';

/**
 * Runs a task with a private git folder: a configuration of ours, and no refs, hooks, attributes or grafts. Git runs in it and takes
 * nothing but objects from the repository, so the repository's own configuration has no effect. The folder is removed afterwards.
 */
async function withPrivateGitFolder<T>(
  parent: string,
  { oid, shallow }: { readonly oid: string; readonly shallow: string },
  task: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(parent, 'skep-git-'));
  try {
    await Promise.all([
      mkdir(join(folder, 'refs')),
      writeFile(join(folder, 'HEAD'), 'ref: refs/heads/none\n'),
      writeFile(join(folder, 'config'), bareConfig(oid)),
      ...(shallow === '' ? [] : [writeFile(join(folder, 'shallow'), shallow)]),
    ]);
    return await task(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Objects of a repository that git is to read. */
export interface ObjectsRequest {
  readonly repository: LocalRepository;
  /** The id of one of them. */
  readonly oid: string;
  /** Where the history is cut off, as `readShallow` returns it. */
  readonly shallow: string;
}

/** How git is run over the objects. */
export interface ObjectReader {
  readonly command: Omit<GitCommand, 'args'>;
  readonly limit: OutputLimit;
}

/** Runs a task that reads objects with git. Ends it if they turn out to lie outside the root. */
export async function readObjects<T>(
  { temporaryFolder, gitBinary, maxOutputBytes }: ResolvedOptions,
  request: ObjectsRequest,
  signal: AbortSignal,
  task: (reader: ObjectReader, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const objects = await listObjectFolders(request.repository);
  return await withPrivateGitFolder(temporaryFolder, request, async (folder) => {
    const environment = gitEnvironment({ GIT_DIR: folder, GIT_OBJECT_DIRECTORY: objects[0] });
    const limit = { bytes: maxOutputBytes, failure: () => tooLarge(`${maxOutputBytes} bytes`) };
    const ending = new AbortController();
    const either = AbortSignal.any([signal, ending.signal]);
    const check = refuseOutsideObjects(request.repository, objects, either);
    const work = task({ command: { binary: gitBinary, folder, environment, failed }, limit }, either);
    try {
      const [result] = await Promise.all([work, check]);
      return result;
    } finally {
      ending.abort();
      await Promise.allSettled([work, check]);
    }
  });
}

/**
 * Fetching runs git's other side in the folder that is fetched from. So it is given a folder with links to the repository's objects,
 * branches and tags, and a configuration of ours. There is one for each repository that was asked for.
 */
export function createFetchFolders(temporaryFolder: string) {
  let parent: Promise<ProcessFolder> | null = null;
  const names = new Map<string, string>();
  const repositories = new KeyedMutex();

  async function folderOf({ gitDir, commonDir }: LocalRepository): Promise<string> {
    parent ??= makeProcessFolder(temporaryFolder, 'skep-git-remotes-');
    const name = names.get(gitDir) ?? String(names.size);
    names.set(gitDir, name);
    const folder = join((await parent).path, name);
    // Made again each time: something may clean temporary folders.
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await Promise.all(['objects', 'refs', 'packed-refs'].map((entry) => link(join(commonDir, entry), join(folder, entry))));
    return folder;
  }

  async function make(repository: LocalRepository, signal: AbortSignal): Promise<string> {
    const objects = await listObjectFolders(repository);
    await Promise.all([refuseOutsideObjects(repository, objects, signal), refuseOutsideRefs(repository)]);
    const [head, shallow, folder] = await Promise.all([readHead(repository), readShallow(repository), folderOf(repository)]);
    await replaceFile(folder, 'config', bareConfig(head.oid));
    await (shallow === '' ? rm(join(folder, 'shallow'), { force: true }) : replaceFile(folder, 'shallow', shallow));
    await replaceFile(folder, 'HEAD', headFile(head));
    return folder;
  }

  return {
    /** Returns the folder's absolute path. Its objects and branches are the repository's at any time; its HEAD is as of this call. */
    get: (repository: LocalRepository, signal: AbortSignal): Promise<string> =>
      repositories.inTurn(repository.gitDir, () => make(repository, signal), signal),
    /** Removes all of them. */
    async remove(): Promise<void> {
      // A call whose caller has left would make its folder again.
      await repositories.settled();
      await (await parent)?.remove();
    },
  };
}

async function link(target: string, path: string): Promise<void> {
  await symlink(target, path).catch((error: unknown) => {
    if (!hasCode(error, 'EEXIST')) throw error;
  });
}

/** Replaces the file in one step, since git may read it at this moment. */
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
