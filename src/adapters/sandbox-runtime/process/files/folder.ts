import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

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
