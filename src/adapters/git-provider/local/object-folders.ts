import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { isFailure } from '../../../domain/failure.ts';
import { failed, hasCode } from './failures.ts';
import type { LocalRepository } from './repository-location.ts';

const alternatesLimitBytes = 64 * 1024;
const maxFolders = 32;

/**
 * The real paths of the folders that hold the repository's objects: its own, and those that it borrows from ("alternates"). Throws
 * `provider_failed` if one is outside the root.
 */
export async function listObjectFolders({ root, commonDir }: LocalRepository): Promise<readonly [string, ...string[]]> {
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

/** Throws `provider_failed` if a link among the objects leads out of the root. */
export async function refuseOutsideObjects({ root }: LocalRepository, objects: readonly string[], signal: AbortSignal): Promise<void> {
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

/** Empty if the folder does not exist: git may be packing its objects at this moment. */
async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  try {
    if ((await stat(folder)).size > maxFolderBytes) throw tooManyObjects();
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (isFailure(error)) throw error;
    if (hasCode(error, 'ENOENT')) return [];
    throw failed("the repository's objects can not be read", error);
  }
}

function tooManyObjects(): Error {
  return failed('the repository has too many object files; pack them with git gc');
}
