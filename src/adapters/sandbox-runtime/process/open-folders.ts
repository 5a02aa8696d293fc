import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { TarName } from '../tar.ts';

/**
 * A directory that is held open, so that it stays the same one whatever a program of the sandbox puts in its place. `within`
 * names what is in it; where the system has no `/proc`, it is looked for by its path again.
 */
export interface Folder extends AsyncDisposable {
  readonly handle: FileHandle;
  readonly within: (name: string) => string;
}

const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Rejects with a system error where there is no directory; a link to one is none. */
export async function openFolder(path: string): Promise<Folder> {
  const handle = await open(path, flags);
  const base = process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : path;
  return {
    handle,
    within: (name) => join(base, name),
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

/** What the system says of a path that is not the directory that it was taken for. */
export const notDirectory: readonly string[] = ['ELOOP', 'ENOTDIR', 'EMLINK'];

/** Goes from directory to directory below a root, one level at a time, and never through a link. Keeps open what the last way led through. */
export interface Walk extends AsyncDisposable {
  /** The directory with this name; stays open until another one is entered. `trouble` is asked where a part is no directory, and it is tried again unless it throws. */
  enter(parts: TarName, trouble: (error: unknown, parent: Folder, depth: number) => Promise<void>): Promise<Folder>;
}

export function createWalk(root: Folder): Walk {
  const opened: { readonly name: string; readonly folder: Folder }[] = [];
  const leave = async (depth: number): Promise<void> => {
    for (const { folder } of opened.splice(depth).toReversed()) await folder[Symbol.asyncDispose]();
  };
  return {
    async enter(parts, trouble) {
      const different = opened.findIndex(({ name }, index) => parts[index] !== name);
      await leave(different < 0 ? opened.length : different);
      for (const name of parts.slice(opened.length)) {
        const parent = opened.at(-1)?.folder ?? root;
        let folder: Folder | undefined;
        while (folder === undefined) {
          folder = await openFolder(parent.within(name)).catch(async (error: unknown) => {
            await trouble(error, parent, opened.length + 1);
            return undefined;
          });
        }
        opened.push({ name, folder });
      }
      return opened.at(-1)?.folder ?? root;
    },
    [Symbol.asyncDispose]: () => leave(0),
  };
}
