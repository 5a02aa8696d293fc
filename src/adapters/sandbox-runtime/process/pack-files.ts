import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readdir, readlink } from 'node:fs/promises';
import type { Pack } from 'tar-stream';
import { quoted, refusedFiles } from '../sandbox-path.ts';
import { addEntry, tarHeader, type TarName } from '../tar.ts';
import { type Folder, notDirectory, openFolder } from './open-folders.ts';
import { errorCode } from './system-errors.ts';

const chunkBytes = 256 * 1024;
/** A pipe in the place of a file must not make anybody wait. */
const readOnly = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Adds what is in the folder under the name, with all that is below it. What is neither a file, a directory nor a link is left out, and
 * so is what goes away meanwhile.
 */
export async function addTree(tar: Pack, parent: Folder, name: string, parts: TarName): Promise<void> {
  const path = parent.within(name);
  const found = await lstat(path).catch(unlessGone);
  if (found === null) return;
  if (found.isDirectory()) await addFolder(tar, path, parts);
  else if (found.isSymbolicLink()) {
    const target = await readlink(path).catch(unlessGone);
    if (target !== null) await addEntry(tar, { ...tarHeader({ ...metaOf(found, parts), kind: 'symlink', target }, []), ...ownerOf(found) });
  } else if (found.isFile()) await addFile(tar, path, parts);
}

/** Adds an opened folder under the name, with all that is below it. */
export async function addOpened(tar: Pack, folder: Folder, parts: TarName): Promise<void> {
  const found = await folder.handle.stat();
  await addEntry(tar, { ...tarHeader({ ...metaOf(found, parts), kind: 'directory' }, []), ...ownerOf(found) });
  for (const name of (await readdir(folder.within('.'))).toSorted()) {
    if (name.includes('\uFFFD'))
      throw refusedFiles('path', `${quoted([...parts, name].join('/'))} has a name that is not UTF-8; rename it`);
    await addTree(tar, folder, name, [...parts, name]);
  }
}

async function addFolder(tar: Pack, path: string, parts: TarName): Promise<void> {
  const folder = await openFolder(path).catch(unlessGone);
  if (folder === null) return;
  try {
    await addOpened(tar, folder, parts);
  } finally {
    await folder[Symbol.asyncDispose]();
  }
}

async function addFile(tar: Pack, path: string, parts: TarName): Promise<void> {
  const handle = await open(path, readOnly).catch(unlessGone);
  if (handle === null) return;
  try {
    const found = await handle.stat();
    if (!found.isFile()) return;
    const content = contentOf(handle, found.size);
    await addEntry(
      tar,
      { ...tarHeader({ ...metaOf(found, parts), kind: 'file', size: found.size, content }, []), ...ownerOf(found) },
      content,
    );
  } finally {
    await handle.close();
  }
}

/** As many bytes as were promised, whatever becomes of the file: zeros for what is missing. */
async function* contentOf(handle: FileHandle, size: number): AsyncGenerator<Uint8Array, void, void> {
  for (let at = 0; at < size; ) {
    const chunk = Buffer.alloc(Math.min(chunkBytes, size - at));
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, at);
    const given = bytesRead === 0 ? chunk : chunk.subarray(0, bytesRead);
    at += given.length;
    yield given;
  }
}

function metaOf({ mode, mtime }: Stats, parts: TarName): { readonly parts: TarName; readonly mode: number; readonly modifiedAt: Date } {
  return { parts, mode: mode & 0o777, modifiedAt: mtime };
}

function ownerOf({ uid, gid }: Stats): { readonly uid: number; readonly gid: number } {
  return { uid, gid };
}

function unlessGone(error: unknown): null {
  if (errorCode(error) === 'ENOENT' || notDirectory.includes(errorCode(error) ?? '')) return null;
  throw error;
}
