import { constants } from 'node:fs';
import { open, realpath, type FileHandle } from 'node:fs/promises';
import { sep } from 'node:path';
import { isFailure } from '../../../domain/failure.ts';
import { failed, hasCode } from './failures.ts';

export type RootFolder = ReturnType<typeof createRootFolder>;

/** A folder, by its real path, that no name and no link may lead out of. */
export function createRootFolder(root: string) {
  const prefix = root.endsWith(sep) ? root : root + sep;
  const isInside = (path: string): boolean => path === root || path.startsWith(prefix);
  return {
    /** The real path behind `path`; null if there is none, or if it is outside. */
    async resolve(path: string): Promise<string | null> {
      const real = await realPathOf(path);
      return real !== null && isInside(real) ? real : null;
    },
    /**
     * The content of a regular file; null if it does not exist. Throws `provider_failed` if it leads outside, is larger than
     * `limitBytes`, or is no regular file. Never blocks, as reading a named pipe would.
     */
    async read(path: string, limitBytes: number): Promise<Buffer | null> {
      const real = await realPathOf(path);
      if (real === null) return null;
      if (!isInside(real)) throw failed('a file of the repository is a link that leads out of the root folder');
      return await readRegular(real, limitBytes);
    },
  };
}

const gone = ['ENOENT', 'ENOTDIR'];
const unreachable = [...gone, 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'EPERM', 'ERR_INVALID_ARG_VALUE'];

/** The real path behind a path; null if nothing can be reached there. */
export async function realPathOf(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if (hasCode(error, ...unreachable)) return null;
    throw failed("the repository's files can not be read", error);
  }
}

const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

async function readRegular(path: string, limitBytes: number): Promise<Buffer | null> {
  let file: FileHandle | null = null;
  try {
    file = await open(path, flags);
    const stats = await file.stat();
    if (stats.isDirectory()) return null;
    if (!stats.isFile()) throw failed('a file of the repository is not a regular file');
    if (stats.size > limitBytes) throw failed(`a file of the repository is larger than ${limitBytes} bytes`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(stats.size), 0, stats.size, 0);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    if (isFailure(error)) throw error;
    if (hasCode(error, ...gone)) return null;
    throw failed('a file of the repository can not be read', error);
  } finally {
    await file?.close();
  }
}
