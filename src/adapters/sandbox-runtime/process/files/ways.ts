import { lstat } from 'node:fs/promises';
import { Failure, isFailure } from '../../../../domain/failure.ts';
import { quoted, refusedFiles } from '../../sandbox-path.ts';
import type { TarName } from '../../tar-entries.ts';
import { errorCode } from '../file-errors.ts';
import { notDirectory, type Folder } from './folder.ts';
import { enterMaking } from './unpack.ts';
import { createWalk } from './walk.ts';

export interface Place extends AsyncDisposable {
  readonly folder: Folder;
}

/** The directory that an archive is unpacked in, which is made where it is not there. */
export async function enterPlace(root: Folder, parts: TarName, directory: string): Promise<Place> {
  const walk = createWalk(root);
  try {
    const folder = await enterMaking(walk, parts);
    return { folder, [Symbol.asyncDispose]: () => walk[Symbol.asyncDispose]() };
  } catch (error) {
    await walk[Symbol.asyncDispose]();
    if (isFailure(error)) throw refusedFiles('directory', `${quoted(directory)} leads through something else than directories`);
    throw error;
  }
}

/** Where a path leads: a name in a folder, or the root itself, whose name is null. The stack closes what is opened. */
export async function findPlace(root: Folder, parts: TarName, path: string, stack: AsyncDisposableStack): Promise<{ readonly folder: Folder; readonly name: string | null }> {
  const name = parts.at(-1) ?? null;
  if (name === null) return { folder: root, name };
  try {
    const walk = stack.use(createWalk(root));
    const folder = await walk.enter(parts.slice(0, -1), async (error) => {
      throw error;
    });
    await lstat(folder.within(name));
    return { folder, name };
  } catch (error) {
    const code = errorCode(error) ?? '';
    if (code === 'ENOENT' || code === 'ENAMETOOLONG' || notDirectory.includes(code)) throw new Failure('file_not_found', { path });
    throw error;
  }
}
