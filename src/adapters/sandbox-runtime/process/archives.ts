import { fchmodSync, futimesSync, type Stats } from 'node:fs';
import { type FileHandle, link, lstat, lutimes, open, readdir, readlink, symlink, unlink } from 'node:fs/promises';
import type { Pack } from 'tar-stream';
import { addEntry } from '../../shared/packed-tar.ts';
import { errorCode, ignoring } from '../../shared/system-errors.ts';
import { quotedName, refusedFiles } from '../sandbox-path.ts';
import { type TarEntry, tarHeader, type TarName, throughLink } from '../tar.ts';
import { chunkBytes, type Folder, isNotDirectory, FolderWalk, joinBytes, newFile, openFolder, readOnly } from './folder-walk.ts';

const gone = (error: unknown): null => (isNotDirectory(error) ? null : ignoring('ENOENT')(error));

/**
 * Adds the entry at the path with all its content. Leaves out everything except files, directories and links, and everything that is
 * removed meanwhile. Names are bytes, because they need not be UTF-8.
 */
export async function addTree(tar: Pack, path: string | Buffer, name: Buffer): Promise<void> {
  const found = await lstat(path).catch(gone);
  if (found?.isDirectory() === true) {
    await using folder = await openFolder(path).catch(gone);
    if (folder !== null) await addOpened(tar, folder, name);
  } else if (found?.isSymbolicLink() === true) {
    const target = await readlink(path, 'buffer').catch(gone);
    if (target !== null) await add(tar, found, { ...metaOf(found, name), kind: 'symlink', target: target.toString() }, name, target);
  } else if (found?.isFile() === true) {
    await using handle = await open(path, readOnly).catch(gone);
    const file = await handle?.stat();
    if (handle === null || file?.isFile() !== true) return;
    await add(tar, file, { ...metaOf(file, name), kind: 'file', size: file.size, content: contentOf(handle, file.size) }, name);
  }
}

export async function addOpened(tar: Pack, folder: Folder, name: Buffer): Promise<void> {
  const found = await folder.handle.stat();
  const directory = folder.within('.');
  await add(tar, found, { ...metaOf(found, name), kind: 'directory' }, joinBytes(name, Buffer.alloc(0)));
  for (const inner of (await readdir(directory, 'buffer')).toSorted((a, b) => Buffer.compare(a, b))) {
    await addTree(tar, joinBytes(directory, inner), joinBytes(name, inner));
  }
}

async function add(tar: Pack, { uid, gid }: Stats, entry: TarEntry, path: Buffer, linkpath?: Buffer): Promise<void> {
  const names = { path, ...(linkpath !== undefined && { linkpath }) };
  await addEntry(tar, { ...tarHeader(entry, []), uid, gid }, entry.kind === 'file' ? entry.content : undefined, names);
}

/** Yields exactly `size` bytes, even if the file changes. Missing bytes are zeros. */
async function* contentOf(handle: FileHandle, size: number): AsyncGenerator<Uint8Array, void, void> {
  for (let at = 0; at < size; ) {
    const chunk = Buffer.alloc(Math.min(chunkBytes, size - at));
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, at);
    const given = bytesRead === 0 ? chunk : chunk.subarray(0, bytesRead);
    at += given.length;
    yield given;
  }
}

function metaOf({ mode, mtime }: Stats, name: Buffer) {
  return { parts: [name.toString()], mode: mode & 0o1777, modifiedAt: mtime };
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
        throw entryErrors.has(code) ? refusedFiles('archive', `${quotedName(entry.parts.join('/'))} can't be made there (${code})`) : error;
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
    const found = await lstat(walk.last.within(way.at(-1) ?? ''));
    if (found.isSymbolicLink()) throw throughLink(parts, way);
    throw refusedFiles('archive', `${quotedName(way.join('/'))} is there, and is not a directory`);
  }
}

async function writeFile(folder: Folder, name: string, { content, mode, modifiedAt }: Entry<'file'>): Promise<void> {
  const path = folder.within(name);
  await using handle = await createOrReplace(path, () => open(path, newFile, 0o600));
  for await (const chunk of content) await handle.writeFile(chunk);
  // For an open file, the synchronous calls are fast, and a repository has ten thousand files.
  fchmodSync(handle.fd, mode);
  futimesSync(handle.fd, modifiedAt, modifiedAt);
}

async function writeLink(folder: Folder, name: string, { target, modifiedAt }: Entry<'symlink'>): Promise<void> {
  const path = folder.within(name);
  await createOrReplace(path, () => symlink(target, path));
  await lutimes(path, modifiedAt, modifiedAt).catch(ignoring('ENOENT'));
}

async function addName(folder: Folder, name: string, { parts, target }: Entry<'hardlink'>, targets: FolderWalk): Promise<void> {
  const source = (await enter(targets, target.slice(0, -1), false)).within(target.at(-1) ?? '');
  // A hard link to itself exists already.
  if (parts.join('/') === target.join('/')) return;
  await createOrReplace(folder.within(name), () => link(source, folder.within(name)));
}

/** Creates something at a path. First removes an existing file or link there. A directory is an error. */
async function createOrReplace<T>(path: string, make: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await make();
    } catch (error) {
      ignoring('EEXIST')(error);
      await unlink(path).catch(ignoring('ENOENT'));
    }
  }
}
