import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { TarName } from '../tar.ts';

/**
 * A directory that is held open, so that it stays the same one whatever a program of the sandbox puts in its place. `within` returns the
 * path of a name in it. On a system without `/proc` that path leads through the directory's own path again.
 */
export interface Folder extends AsyncDisposable {
  readonly handle: FileHandle;
  readonly within: (name: string) => string;
}

const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Rejects with a system error if there is no directory; a link to one is none. */
export async function openFolder(path: string): Promise<Folder> {
  const handle = await open(path, flags);
  const base = process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : path;
  return { handle, within: (name) => join(base, name), [Symbol.asyncDispose]: () => handle.close() };
}

/** The system's codes for a path that is not a directory. */
export const notDirectory: readonly string[] = ['ELOOP', 'ENOTDIR', 'EMLINK'];

/** Handles the error of a part of a path that is no directory. Unless it throws, the part is tried again. */
type OnTrouble = (error: unknown, parent: Folder, depth: number) => Promise<void>;

/** Opens directories below a root, one level at a time, and never through a link. Keeps open what the last path led through. */
export interface Walk extends AsyncDisposable {
  /** Returns the directory with this name, which stays open until another one is entered. */
  enter(parts: TarName, onTrouble: OnTrouble): Promise<Folder>;
}

export function createWalk(root: Folder): Walk {
  const opened: { readonly name: string; readonly folder: Folder }[] = [];
  const leave = async (depth: number): Promise<void> => {
    for (const { folder } of opened.splice(depth).toReversed()) await folder[Symbol.asyncDispose]();
  };
  return {
    async enter(parts, onTrouble) {
      const different = opened.findIndex(({ name }, index) => parts[index] !== name);
      await leave(different < 0 ? opened.length : different);
      for (const name of parts.slice(opened.length)) {
        const parent = opened.at(-1)?.folder ?? root;
        let folder: Folder | undefined;
        while (folder === undefined) {
          folder = await openFolder(parent.within(name)).catch(async (error: unknown) => {
            await onTrouble(error, parent, opened.length + 1);
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
