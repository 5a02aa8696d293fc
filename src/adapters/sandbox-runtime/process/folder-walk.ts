import { constants } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { errorCode, ignoring } from '../../shared/system-errors.ts';
import { bytesOf, type TarName } from '../tar.ts';

/**
 * An open directory. It stays the same one even if a program of the sandbox replaces the path. `within` returns the path of a name in it.
 * On a system without `/proc`, that path contains the directory's own path again.
 */
export interface Folder extends AsyncDisposable {
  readonly handle: FileHandle;
  readonly within: (name: string) => Buffer;
}

const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Opens a file to read it, but not through a link. Does not wait if a pipe replaced it. */
export const readOnly = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
export const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** How many bytes of a file to read at once. */
export const chunkBytes = 256 * 1024;

/** Opens a directory, but not through a link. Rejects with a system error if there is none. */
export async function openFolder(path: string | Buffer): Promise<Folder> {
  const handle = await open(path, flags);
  const base = process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : path;
  return { handle, within: (name) => joinBytes(base, Buffer.from(name)), [Symbol.asyncDispose]: () => handle.close() };
}

/** Returns the path of a name in a directory. Names are bytes: if they are not UTF-8, a string of them is the path of nothing. */
export function joinBytes(directory: string | Buffer, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(directory), Buffer.from('/'), name]);
}

/** Returns the path of a name that has one character per byte. */
export function pathIn(folder: Folder, name: string): Buffer {
  return joinBytes(folder.within('.'), bytesOf(name));
}

/** Returns true for the system errors if a path is not a directory. */
export function isNotDirectory(error: unknown): boolean {
  return ['ELOOP', 'ENOTDIR', 'EMLINK'].includes(errorCode(error) ?? '');
}

/** Opens directories below a root, one level at a time, and never through a link. Keeps the directories of the last path open. */
export class FolderWalk implements AsyncDisposable {
  readonly #root: Folder;
  readonly #opened: { readonly name: string; readonly folder: Folder }[] = [];

  constructor(root: Folder) {
    this.#root = root;
  }

  get depth(): number {
    return this.#opened.length;
  }

  get last(): Folder {
    return this.#opened.at(-1)?.folder ?? this.#root;
  }

  /** Returns the directory at the path. It stays open until another one is entered. With `makes`, creates missing directories. */
  async enter(parts: TarName, makes = false): Promise<Folder> {
    const different = this.#opened.findIndex(({ name }, index) => parts[index] !== name);
    if (different >= 0) await this.#leave(different);
    for (const name of parts.slice(this.depth)) {
      const path = pathIn(this.last, name);
      let folder: Folder | null = null;
      while (folder === null) {
        folder = await openFolder(path).catch(ignoring(...(makes ? ['ENOENT'] : [])));
        if (folder === null) await mkdir(path, 0o755).catch(ignoring('EEXIST'));
      }
      this.#opened.push({ name, folder });
    }
    return this.last;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#leave(0);
  }

  async #leave(depth: number): Promise<void> {
    for (const { folder } of this.#opened.splice(depth).toReversed()) await folder[Symbol.asyncDispose]();
  }
}
