import { constants } from 'node:fs';
import { lstat, mkdir } from 'node:fs/promises';
import { errorCode, ignoring } from '../../shared/system-errors.ts';
import { refusedFiles } from '../sandbox-path.ts';
import { bytesOf, type TarName } from '../tar.ts';

/** Opens a file to read it, but not through a link. Does not wait if it is a pipe. */
export const readOnly = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
export const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** How many bytes of a file to read at once. */
export const chunkBytes = 256 * 1024;

/** Returns the path of a name in a directory. Names are bytes: if they are not UTF-8, a string of them is the path of nothing. */
export function joinBytes(directory: string | Buffer, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(directory), Buffer.from('/'), name]);
}

/** Something else than a directory is on the way to one. */
export class NotDirectory extends Error {
  readonly code = 'ENOTDIR';
  readonly way: TarName;
  readonly isLink: boolean;

  constructor(way: TarName, isLink: boolean) {
    super('not a directory');
    this.way = way;
    this.isLink = isLink;
  }
}

/** Returns true for the errors if a path leads through something else than directories. */
export function isNotDirectory(error: unknown): boolean {
  return ['ELOOP', 'ENOTDIR'].includes(errorCode(error) ?? '');
}

/** Refuses a path that is too long for the system. Programs can create one, directory by directory. */
export function refuseLong(error: unknown): never {
  if (errorCode(error) !== 'ENAMETOOLONG') throw error;
  throw refusedFiles('path', 'a path below it is too long for this system (Linux: 4,095 bytes); shorten or remove that path');
}

/** Finds and creates directories below a root. Refuses a path through a link, because it may lead out of the root. */
export class Directories {
  readonly #root: string | Buffer;
  /** The directories that were entered before, as their parts joined by slashes. */
  readonly #known = new Set(['']);

  constructor(root: string | Buffer) {
    this.#root = root;
  }

  path(parts: TarName): Buffer {
    return parts.length === 0 ? Buffer.from(this.#root) : joinBytes(this.#root, bytesOf(parts.join('/')));
  }

  /** Returns the path of a directory. With `makes`, creates what is missing. Throws {@link NotDirectory}, or a system error. */
  async enter(parts: TarName, makes = false): Promise<Buffer> {
    for (let depth = 1; depth <= parts.length; depth += 1) {
      const way = parts.slice(0, depth);
      const name = way.join('/');
      if (this.#known.has(name)) continue;
      const path = this.path(way);
      if (makes) await mkdir(path, 0o755).catch(ignoring('EEXIST'));
      const found = await lstat(path);
      if (!found.isDirectory()) throw new NotDirectory(way, found.isSymbolicLink());
      this.#known.add(name);
    }
    return this.path(parts);
  }
}
