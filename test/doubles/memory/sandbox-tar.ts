import { posix } from 'node:path';
import { quotedName, refusedFiles } from '../../../src/adapters/sandbox-runtime/sandbox-path.ts';
import { bytesOf, type TarEntry, tarHeader, type TarName, tarName, textOf, throughLink } from '../../../src/adapters/sandbox-runtime/tar.ts';
import { tarEnd, tarEntry } from '../../../src/adapters/shared/packed-tar.ts';
import { Failure } from '../../../src/domain/failure.ts';
import type { MemoryFiles } from './sandbox-files.ts';

/** The limit of most file systems. */
const maxName = 255;

/** Puts the entries below the directory. */
export async function unpack(files: MemoryFiles, directory: string, entries: AsyncIterable<TarEntry>): Promise<void> {
  requireDirectory(files, directory);
  files.makeDirectory(directory);
  for await (const entry of entries) {
    const path = posix.join(directory, textOf(entry.parts));
    requireParents(files, directory, entry.parts);
    const there = files.node(path)?.kind;
    if (there !== undefined && (there === 'directory') !== (entry.kind === 'directory'))
      throw refusedFiles('archive', `${quotedName(textOf(entry.parts))} is there as something else; remove that first`);
    const { mode, modifiedAt } = entry;
    if (entry.kind === 'directory') files.put(path, { kind: 'directory', mode, modifiedAt });
    else if (entry.kind === 'symlink') files.put(path, { kind: 'symlink', mode, modifiedAt, target: bytesOf(entry.target).toString() });
    else if (entry.kind === 'file') files.put(path, { kind: 'file', mode, modifiedAt, content: await gather(entry.content) });
    else {
      requireParents(files, directory, entry.target);
      const node = files.node(posix.join(directory, textOf(entry.target)));
      if (node === undefined || node.kind === 'directory')
        throw refusedFiles('archive', `${quotedName(textOf(entry.parts))} links to a file that is not there`);
      files.put(path, node);
    }
  }
}

/** Returns a tar of the file or directory. Throws `file_not_found`. */
export function packed(files: MemoryFiles, path: string, signal: AbortSignal): ReadableStream<Uint8Array> {
  const paths = files.below(path);
  if (paths.length === 0) throw new Failure('file_not_found', { path });
  const tar = async function* (): AsyncGenerator<Uint8Array, void> {
    for (const one of paths) {
      signal.throwIfAborted();
      const node = files.node(one);
      if (node === undefined) continue;
      const parts = tarName(posix.relative(posix.dirname(path), one).split('/'));
      const content = node.kind === 'file' ? once(node.content) : undefined;
      yield* tarEntry(tarHeader(entryOf(node, parts), []), content);
    }
    yield tarEnd;
  };
  return ReadableStream.from(tar());
}

function entryOf(node: NonNullable<ReturnType<MemoryFiles['node']>>, parts: TarName): TarEntry {
  if (node.kind === 'directory') return { ...node, parts };
  if (node.kind === 'symlink') return { ...node, parts, target: tarName([node.target]).join('') };
  return { ...node, parts, size: node.content.byteLength, content: once(node.content) };
}

function requireDirectory(files: MemoryFiles, path: string): void {
  for (let at = path; at !== '/'; at = posix.dirname(at)) {
    if (files.node(at) !== undefined && !files.isDirectory(at))
      throw refusedFiles('directory', `${quotedName(at)} is there, and is not a directory`);
  }
}

function requireParents(files: MemoryFiles, directory: string, parts: TarName): void {
  if (parts.some((part) => part.length > maxName))
    throw refusedFiles('archive', `${quotedName(textOf(parts))} has a name that is too long`);
  for (let depth = 1; depth < parts.length; depth += 1) {
    const kind = files.node(posix.join(directory, textOf(parts.slice(0, depth))))?.kind;
    if (kind === 'symlink') throw throughLink(parts, parts.slice(0, depth));
    if (kind === 'file') throw refusedFiles('archive', `${quotedName(textOf(parts.slice(0, depth)))} is there, and is not a directory`);
  }
}

async function gather(content: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* once(content: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  if (content.byteLength > 0) yield content;
}
