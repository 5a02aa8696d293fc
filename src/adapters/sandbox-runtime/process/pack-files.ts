import type { Stats } from 'node:fs';
import { type FileHandle, lstat, open, readdir, readlink } from 'node:fs/promises';
import type { Pack } from 'tar-stream';
import { addEntry } from '../../shared/packed-tar.ts';
import { ignoring } from '../../shared/system-errors.ts';
import { type TarEntry, tarHeader, type TarName } from '../tar.ts';
import { chunkBytes, type Folder, isNotDirectory, openFolder, readOnly } from './folder-walk.ts';

const gone = (error: unknown): null => (isNotDirectory(error) ? null : ignoring('ENOENT')(error));

/**
 * Adds an entry of the folder with all its content. Leaves out everything except files, directories and links, everything that is removed
 * meanwhile, and names that are not UTF-8, which no tar of this package can hold.
 */
export async function addTree(tar: Pack, parent: Folder, name: string, parts: TarName): Promise<void> {
  const path = parent.within(name);
  const found = await lstat(path).catch(gone);
  if (found?.isDirectory() === true) {
    await using folder = await openFolder(path).catch(gone);
    if (folder !== null) await addOpened(tar, folder, parts);
  } else if (found?.isSymbolicLink() === true) {
    const target = await readlink(path).catch(gone);
    if (target !== null) await add(tar, found, { ...metaOf(found, parts), kind: 'symlink', target });
  } else if (found?.isFile() === true) {
    await using handle = await open(path, readOnly).catch(gone);
    const file = await handle?.stat();
    if (handle === null || file?.isFile() !== true) return;
    await add(tar, file, { ...metaOf(file, parts), kind: 'file', size: file.size, content: contentOf(handle, file.size) });
  }
}

export async function addOpened(tar: Pack, folder: Folder, parts: TarName): Promise<void> {
  const found = await folder.handle.stat();
  await add(tar, found, { ...metaOf(found, parts), kind: 'directory' });
  for (const name of (await readdir(folder.within('.'))).toSorted()) {
    await addTree(tar, folder, name, [...parts, name]);
  }
}

async function add(tar: Pack, { uid, gid }: Stats, entry: TarEntry): Promise<void> {
  await addEntry(tar, { ...tarHeader(entry, []), uid, gid }, entry.kind === 'file' ? entry.content : undefined);
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

function metaOf({ mode, mtime }: Stats, parts: TarName) {
  return { parts, mode: mode & 0o777, modifiedAt: mtime };
}
