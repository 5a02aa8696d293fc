import { fchmodSync, futimesSync, type Stats } from 'node:fs';
import { type FileHandle, link, lstat, lutimes, open, readdir, readlink, rename, symlink, unlink } from 'node:fs/promises';
import { tarEntry } from '../../shared/packed-tar.ts';
import { errorCode, ignoring } from '../../shared/system-errors.ts';
import { temporaryName } from '../../shared/temporary-name.ts';
import { quotedName, refusedFiles } from '../sandbox-path.ts';
import { bytesOf, type TarEntry, type TarName, textOf, throughLink } from '../tar.ts';
import { chunkBytes, type Folder, isNotDirectory, FolderWalk, joinBytes, newFile, openFolder, pathIn, readOnly } from './folder-walk.ts';

const gone = (error: unknown): null => (isNotDirectory(error) ? null : ignoring('ENOENT')(error));

type Tar = AsyncGenerator<Uint8Array, void>;

/**
 * Yields the tar entries of the path with all its content. Leaves out everything except files, directories and links, and everything that
 * is removed meanwhile. Names are bytes, because they need not be UTF-8.
 */
export async function* packTree(path: string | Buffer, name: Buffer): Tar {
  const found = await lstat(path).catch(gone);
  if (found?.isDirectory() === true) {
    await using folder = await openFolder(path).catch(gone);
    if (folder !== null) yield* packFolder(folder, name);
  } else if (found?.isSymbolicLink() === true) {
    const linkname = await readlink(path, 'buffer').catch(gone);
    if (linkname !== null) yield* tarEntry({ ...metaOf(found), name, type: 'symlink', linkname });
  } else if (found?.isFile() === true) {
    await using handle = await open(path, readOnly).catch(gone);
    const file = await handle?.stat();
    if (handle === null || file?.isFile() !== true) return;
    yield* tarEntry({ ...metaOf(file), name, type: 'file', size: file.size }, contentOf(handle, file.size));
  }
}

export async function* packFolder(folder: Folder, name: Buffer): Tar {
  const directory = folder.within('.');
  yield* tarEntry({ ...metaOf(await folder.handle.stat()), name: joinBytes(name, Buffer.alloc(0)), type: 'directory' });
  for (const inner of (await readdir(directory, 'buffer')).toSorted((a, b) => Buffer.compare(a, b))) {
    yield* packTree(joinBytes(directory, inner), joinBytes(name, inner));
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

/** Unpacks the entries below the root. The sandbox's programs may run and change the files meanwhile. */
export async function unpackBelow(root: Folder, entries: AsyncIterable<TarEntry>): Promise<void> {
  await using walk = new FolderWalk(root);
  await using targets = new FolderWalk(root);
  const directories: Entry<'directory'>[] = [];
  try {
    for await (const entry of entries) {
      try {
        const folder = await enter(walk, entry.kind === 'directory' ? entry.parts : entry.parts.slice(0, -1), true);
        const name = entry.parts.at(-1) ?? '';
        if (entry.kind === 'file') await writeFile(folder, name, entry);
        else if (entry.kind === 'symlink') await writeLink(folder, name, entry);
        else if (entry.kind === 'hardlink') await addName(folder, name, entry, targets);
        else {
          directories.push(entry);
          await folder.handle.chmod(entry.mode | 0o700);
        }
      } catch (error) {
        const code = errorCode(error) ?? '';
        throw entryErrors.has(code) ? refusedFiles('archive', `${quotedName(textOf(entry.parts))} can't be made there (${code})`) : error;
      }
    }
  } finally {
    // Directories come last, since writing into one changes its time, and its mode may forbid writing.
    for (const { parts, mode, modifiedAt } of directories.toReversed()) {
      const folder = await walk.enter(parts).catch(() => null);
      await folder?.handle.utimes(modifiedAt, modifiedAt);
      await folder?.handle.chmod(mode);
    }
  }
}

/** Enters a directory. Throws `invalid_request` if the path leads through something else. */
async function enter(walk: FolderWalk, parts: TarName, makes: boolean): Promise<Folder> {
  try {
    return await walk.enter(parts, makes);
  } catch (error) {
    if (!isNotDirectory(error)) throw error;
    const way = parts.slice(0, walk.depth + 1);
    const found = await lstat(pathIn(walk.last, way.at(-1) ?? ''));
    if (found.isSymbolicLink()) throw throughLink(parts, way);
    throw refusedFiles('archive', `${quotedName(textOf(way))} is there, and is not a directory`);
  }
}

/** Writes a temporary file, and then renames it: if the archive breaks off, the old file stays. */
async function writeFile(folder: Folder, name: string, { content, mode, modifiedAt }: Entry<'file'>): Promise<void> {
  const temporary = folder.within(temporaryName());
  await using handle = await open(temporary, newFile, 0o600);
  try {
    for await (const chunk of content) await handle.writeFile(chunk);
    // For an open file, the synchronous calls are fast, and a repository has ten thousand files.
    fchmodSync(handle.fd, mode);
    futimesSync(handle.fd, modifiedAt, modifiedAt);
    await rename(temporary, pathIn(folder, name));
  } catch (error) {
    await unlink(temporary).catch(ignoring('ENOENT'));
    throw error;
  }
}

async function writeLink(folder: Folder, name: string, { target, modifiedAt }: Entry<'symlink'>): Promise<void> {
  const path = pathIn(folder, name);
  await createOrReplace(path, () => symlink(bytesOf(target), path));
  await lutimes(path, modifiedAt, modifiedAt).catch(ignoring('ENOENT'));
}

async function addName(folder: Folder, name: string, { parts, target }: Entry<'hardlink'>, targets: FolderWalk): Promise<void> {
  const source = pathIn(await enter(targets, target.slice(0, -1), false), target.at(-1) ?? '');
  // A hard link to itself exists already.
  if (parts.join('/') === target.join('/')) return;
  await createOrReplace(pathIn(folder, name), () => link(source, pathIn(folder, name)));
}

/** Creates a link at a path. First removes an existing file or link there. A directory is an error. */
async function createOrReplace<T>(path: Buffer, make: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await make();
    } catch (error) {
      ignoring('EEXIST')(error);
      await unlink(path).catch(ignoring('ENOENT'));
    }
  }
}
