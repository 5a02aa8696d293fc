import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
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

/** The system's codes for a path that is not a directory. */
export const notDirectory: readonly string[] = ['ELOOP', 'ENOTDIR', 'EMLINK'];

/** Handles the error of a part of a path that is no directory. Unless it throws, the part is tried again. */
type OnTrouble = (error: unknown, parent: Folder, depth: number) => Promise<null>;

/** Opens directories below a root, one level at a time, and never through a link. Keeps open what the last path led through. */
export class Walk implements AsyncDisposable {
  readonly #root: Folder;
  readonly #opened: { readonly name: string; readonly folder: Folder }[] = [];

  constructor(root: Folder) {
    this.#root = root;
  }

  /** Returns the directory with this name, which stays open until another one is entered. */
  async enter(parts: TarName, onTrouble: OnTrouble = rethrow): Promise<Folder> {
    const different = this.#opened.findIndex(({ name }, index) => parts[index] !== name);
    if (different >= 0) await this.#leave(different);
    for (const name of parts.slice(this.#opened.length)) {
      const parent = this.#last;
      let folder: Folder | null = null;
      while (folder === null) {
        folder = await openFolder(parent.within(name)).catch((error: unknown) => onTrouble(error, parent, this.#opened.length + 1));
      }
      this.#opened.push({ name, folder });
    }
    return this.#last;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#leave(0);
  }

  get #last(): Folder {
    return this.#opened.at(-1)?.folder ?? this.#root;
  }

  async #leave(depth: number): Promise<void> {
    for (const { folder } of this.#opened.splice(depth).toReversed()) await folder[Symbol.asyncDispose]();
  }
}

async function rethrow(error: unknown): Promise<never> {
  throw error;
}
