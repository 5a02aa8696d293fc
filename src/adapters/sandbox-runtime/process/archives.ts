import { fchmodSync, futimesSync, type Stats } from 'node:fs';
import { chmod, type FileHandle, link, lstat, lutimes, open, readdir, readlink, rename, symlink, unlink, utimes } from 'node:fs/promises';
import { tarEntry } from '../../shared/packed-tar.ts';
import { errorCode, ignoring } from '../../shared/system-errors.ts';
import { temporaryName } from '../../shared/temporary-name.ts';
import { quotedName, refusedFiles } from '../sandbox-path.ts';
import { bytesOf, type TarEntry, type TarName, textOf, throughLink } from '../tar.ts';
import { chunkBytes, Directories, isNotDirectory, joinBytes, newFile, NotDirectory, readOnly, refuseLong } from './directories.ts';

const nullIfGone = (error: unknown): null => (isNotDirectory(error) ? null : ignoring('ENOENT')(error));

type Tar = AsyncGenerator<Uint8Array, void>;

/**
 * Yields the tar entries of the path with all its content. Leaves out everything except files, directories and links, and everything that
 * is removed meanwhile. Names are bytes, because they need not be UTF-8.
 */
export async function* packTree(path: string | Buffer, name: Buffer): Tar {
  const found = await lstat(path).catch(refuseLong).catch(nullIfGone);
  if (found?.isDirectory() === true) {
    const names = await readdir(path, 'buffer').catch(nullIfGone);
    if (names === null) return;
    yield* tarEntry({ ...metaOf(found), name: joinBytes(name, Buffer.alloc(0)), type: 'directory' });
    for (const inner of names.toSorted((a, b) => Buffer.compare(a, b))) {
      yield* packTree(joinBytes(path, inner), joinBytes(name, inner));
    }
  } else if (found?.isSymbolicLink() === true) {
    const linkname = await readlink(path, 'buffer').catch(nullIfGone);
    if (linkname !== null) yield* tarEntry({ ...metaOf(found), name, type: 'symlink', linkname });
  } else if (found?.isFile() === true) {
    await using handle = await open(path, readOnly).catch(nullIfGone);
    const file = await handle?.stat();
    if (handle === null || file?.isFile() !== true) return;
    yield* tarEntry({ ...metaOf(file), name, type: 'file', size: file.size }, contentOf(handle, file.size));
  }
}

/** Yields exactly `size` bytes, even if the file changes. Missing bytes are zeros. */
async function* contentOf(handle: FileHandle, size: number): Tar {
  for (let at = 0; at < size; ) {
    const length = Math.min(chunkBytes, size - at);
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), { position: at });
    const given = bytesRead === 0 ? Buffer.alloc(length) : buffer.subarray(0, bytesRead);
    at += given.length;
    yield given;
  }
}

function metaOf({ mode, mtime, uid, gid }: Stats) {
  return { mode: mode & 0o1777, mtime, uid, gid };
}

type Entry<K extends TarEntry['kind']> = Extract<TarEntry, { readonly kind: K }>;

/** System errors about the entry itself, and not about the disk. */
const entryErrors = new Set(['EISDIR', 'EPERM', 'EACCES', 'ENAMETOOLONG', 'ENOENT', 'EINVAL', 'EILSEQ', 'EMLINK']);

/** Unpacks the entries below the root, which is a directory. */
export async function unpackBelow(root: string | Buffer, entries: AsyncIterable<TarEntry>): Promise<void> {
  const directories = new Directories(root);
  /** By path. If the archive repeats a directory, its last entry counts. */
  const unpacked = new Map<string, Entry<'directory'>>();
  try {
    for await (const entry of entries) {
      try {
        if (entry.kind === 'directory') {
          const path = await enter(directories, entry.parts, true);
          await chmod(path, entry.mode | 0o700);
          unpacked.set(entry.parts.join('/'), entry);
          continue;
        }
        const folder = await enter(directories, entry.parts.slice(0, -1), true);
        const path = directories.path(entry.parts);
        if (entry.kind === 'file') await writeFile(folder, path, entry);
        else if (entry.kind === 'symlink') await writeLink(path, entry);
        else await writeHardLink(path, entry, directories);
      } catch (error) {
        const code = errorCode(error) ?? '';
        throw entryErrors.has(code) ? refusedFiles('archive', `${quotedName(textOf(entry.parts))} can't be made there (${code})`) : error;
      }
    }
  } finally {
    // Directories come last, since writing into one changes its time. The deepest come first, since a mode may forbid the way to them.
    const deepestFirst = [...unpacked.values()].toSorted((a, b) => b.parts.length - a.parts.length);
    for (const { parts, mode, modifiedAt } of deepestFirst) {
      const path = directories.path(parts);
      // A program may have removed it, or forbidden the way to it.
      await utimes(path, modifiedAt, modifiedAt).catch(unreachable);
      await chmod(path, mode).catch(unreachable);
    }
  }
}

const unreachable = ignoring('ENOENT', 'ENOTDIR', 'EACCES');

/** Returns the path of a directory. Throws `invalid_request` if the way to it leads through something else. */
async function enter(directories: Directories, parts: TarName, makes: boolean): Promise<Buffer> {
  try {
    return await directories.enter(parts, makes);
  } catch (error) {
    if (!(error instanceof NotDirectory)) throw error;
    if (error.isLink) throw throughLink(parts, error.way);
    throw refusedFiles('archive', `${quotedName(textOf(error.way))} is there, and is not a directory`);
  }
}

/** Writes a temporary file, and then renames it: if the archive breaks off, the old file stays. */
async function writeFile(folder: Buffer, path: Buffer, { content, mode, modifiedAt }: Entry<'file'>): Promise<void> {
  const temporary = joinBytes(folder, Buffer.from(temporaryName()));
  await using handle = await open(temporary, newFile, 0o600);
  try {
    for await (const chunk of content) await handle.writeFile(chunk);
    // For an open file, the synchronous calls are fast, and a repository has ten thousand files.
    fchmodSync(handle.fd, mode);
    futimesSync(handle.fd, modifiedAt, modifiedAt);
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(ignoring('ENOENT'));
    throw error;
  }
}

async function writeLink(path: Buffer, { target, modifiedAt }: Entry<'symlink'>): Promise<void> {
  await createOrReplace(path, () => symlink(bytesOf(target), path));
  await lutimes(path, modifiedAt, modifiedAt).catch(ignoring('ENOENT'));
}

async function writeHardLink(path: Buffer, { parts, target }: Entry<'hardlink'>, directories: Directories): Promise<void> {
  await enter(directories, target.slice(0, -1), false);
  // A hard link to itself exists already.
  if (parts.join('/') === target.join('/')) return;
  await createOrReplace(path, () => link(directories.path(target), path));
}

/** Creates a link at a path. First removes an existing file or link there. A directory is an error. */
async function createOrReplace<T>(path: Buffer, make: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await make();
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
      await unlink(path).catch(ignoring('ENOENT'));
    }
  }
}
