import { constants } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { errorCode, ignoring } from '../../shared/system-errors.ts';
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
  return { handle, within: (name) => `${base}/${name}`, [Symbol.asyncDispose]: () => handle.close() };
}

/** Returns true for the system's errors of a path that is not a directory. */
export function isNotDirectory(error: unknown): boolean {
  return ['ELOOP', 'ENOTDIR', 'EMLINK'].includes(errorCode(error) ?? '');
}

/** Opens directories below a root, one level at a time, and never through a link. Keeps open what the last path led through. */
export class Walk implements AsyncDisposable {
  readonly #root: Folder;
  readonly #opened: { readonly name: string; readonly folder: Folder }[] = [];

  constructor(root: Folder) {
    this.#root = root;
  }

  /** How many names of the last path were entered. */
  get depth(): number {
    return this.#opened.length;
  }

  /** The directory that was entered last. */
  get last(): Folder {
    return this.#opened.at(-1)?.folder ?? this.#root;
  }

  /** Returns the directory with this name, which stays open until another one is entered. Makes the missing ones if asked to. */
  async enter(parts: TarName, makes = false): Promise<Folder> {
    const different = this.#opened.findIndex(({ name }, index) => parts[index] !== name);
    if (different >= 0) await this.#leave(different);
    for (const name of parts.slice(this.depth)) {
      const path = this.last.within(name);
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
