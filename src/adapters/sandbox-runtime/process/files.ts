import type { Stats } from 'node:fs';
import { lstat, mkdir, open, opendir, readlink, realpath, rename, rm } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { Failure } from '../../../domain/failure.ts';
import type { FileEntry, FileType } from '../../../domain/file-entry.ts';
import type { ByteRange, FileReading, FileVersion, SandboxFiles, WriteOptions } from '../../../ports/sandbox-files.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { errorCode, ignoring } from '../../shared/system-errors.ts';
import { temporaryName } from '../../shared/temporary-name.ts';
import { chunksUntil, requireFile, requireReplaceable, rangeOf, wrongFileType } from '../file-content.ts';
import { partsBelow, quotedName, refusedFiles, sandboxPath } from '../sandbox-path.ts';
import { tarName } from '../tar.ts';
import { type EnteredWorkspace, workspaceParts } from './file-transfer.ts';
import { chunkBytes, type Folder, joinBytes, newFile, openFolder, FolderWalk, readOnly } from './folder-walk.ts';
import { withFailures } from './runtime-failures.ts';

/** A name in an open folder. The name of the workspace itself is `.`. */
interface ResolvedPath extends Pick<EnteredWorkspace, 'stack' | 'ended'> {
  readonly folder: Folder;
  readonly name: string;
  readonly path: string;
  /** The stat of the path. Null if nothing is there. */
  readonly found: Stats | null;
}

interface ResolveOptions {
  readonly followLink?: boolean;
  readonly makeParents?: boolean;
  /** Refuses the workspace itself. */
  readonly isNamed?: boolean;
}

const defaultMode = 0o644;

/**
 * The files of workspaces. A path is resolved as the sandbox's programs do it, and refused if it leads out of the workspace. Then it is
 * entered folder by folder, never through a link. So a program that changes the path meanwhile can't lead out of the workspace.
 */
export class ProcessFiles implements SandboxFiles {
  readonly #enter: (id: string, signal: AbortSignal) => Promise<EnteredWorkspace>;
  readonly #replacements = new KeyedMutex();

  constructor(enter: (id: string, signal: AbortSignal) => Promise<EnteredWorkspace>) {
    this.#enter = enter;
  }

  stat(id: string, path: string, followLink: boolean, signal: AbortSignal): Promise<FileEntry> {
    return this.#at(id, path, { followLink }, signal, async (resolved) =>
      entryAt(resolved.folder.within(resolved.name), resolved.path, requireFound(resolved)));
  }

  read(id: string, path: string, choose: (file: FileEntry) => ByteRange, signal: AbortSignal): Promise<FileReading> {
    return this.#at(id, path, { followLink: true }, signal, async (resolved) => {
      const real = resolved.folder.within(resolved.name);
      requireFile(await entryAt(real, resolved.path, requireFound(resolved)));
      await using stack = new AsyncDisposableStack();
      const handle = await open(real, readOnly);
      stack.defer(() => handle.close());
      const file = await entryAt(real, resolved.path, await handle.stat());
      requireFile(file);
      const { offset, length } = choose(file);
      resolved.ended.throwIfAborted();
      stack.use(resolved.stack.move());
      const kept = stack.move();
      const source = handle.createReadStream({ start: offset, autoClose: false, highWaterMark: chunkBytes });
      const close = (): void => void kept.disposeAsync();
      resolved.ended.addEventListener('abort', () => {
        source.destroy(resolved.ended.reason instanceof Error ? resolved.ended.reason : undefined);
        close();
      });
      return { file, content: rangeOf(source, { offset: 0, length }, file.size - offset, close) };
    });
  }

  async write(
    id: string, path: string, content: ReadableStream<Uint8Array>, { mode, check }: WriteOptions, signal: AbortSignal,
  ): Promise<FileEntry> {
    try {
      return await this.#at(id, path, { followLink: true, makeParents: true, isNamed: true }, signal, async (resolved) => {
        const { folder, name, found } = resolved;
        if (found !== null) requireReplaceable(path, typeOf(found));
        check?.(versionOf(found));
        const temporary = folder.within(temporaryName());
        await using handle = await open(temporary, newFile, 0o600);
        try {
          for await (const chunk of chunksUntil(content, resolved.ended)) await handle.writeFile(chunk);
          resolved.ended.throwIfAborted();
          await handle.chmod(mode ?? (found?.isFile() === true ? found.mode & 0o7777 : defaultMode));
          await this.#replacements.runExclusive(id, async () => {
            if (check !== undefined) check(versionOf(await lstat(folder.within(name)).catch(ignoring('ENOENT'))));
            await rename(temporary, folder.within(name));
          });
        } catch (error) {
          await rm(temporary, { force: true });
          throw error;
        }
        return await entryAt(folder.within(name), resolved.path, await handle.stat());
      });
    } finally {
      if (!content.locked) content.cancel().catch(() => {});
    }
  }

  makeDirectory(id: string, path: string, signal: AbortSignal): Promise<boolean> {
    return this.#at(id, path, { followLink: true, makeParents: true }, signal, async ({ folder, name, found }) => {
      if (found === null) await mkdir(folder.within(name), 0o755);
      else if (!found.isDirectory()) throw wrongFileType(path, typeOf(found));
      return found === null;
    });
  }

  remove(id: string, path: string, recursive: boolean, signal: AbortSignal): Promise<void> {
    return this.#at(id, path, { isNamed: true }, signal, async (resolved) => {
      if (requireFound(resolved).isDirectory() && !recursive) throw wrongFileType(path, 'directory');
      await rm(resolved.folder.within(resolved.name), { recursive });
    });
  }

  move(id: string, from: string, to: string, signal: AbortSignal): Promise<void> {
    return this.#at(id, from, { isNamed: true }, signal, async (source) => {
      requireFound(source);
      await this.#at(id, to, { isNamed: true, makeParents: true }, signal, async (target) => {
        if (target.found?.isDirectory() === true) throw wrongFileType(to, 'directory');
        await rename(source.folder.within(source.name), target.folder.within(target.name));
      });
    });
  }

  async *list(id: string, path: string, depth: number, signal: AbortSignal): AsyncGenerator<FileEntry, void> {
    const resolved = await this.#at(id, path, { followLink: true }, signal, async (resolved) => {
      const found = requireFound(resolved);
      if (!found.isDirectory()) throw wrongFileType(path, typeOf(found));
      const folder = await openFolder(resolved.folder.within(resolved.name));
      return { path: resolved.path, folder, ended: resolved.ended, stack: resolved.stack.move() };
    });
    await using _ = resolved.stack;
    await using folder = resolved.folder;
    yield* entriesIn(folder, resolved.path, depth, resolved.ended);
  }

  /** Runs the work at a path. Turns system errors into `file_not_found`, `wrong_file_type` or `invalid_request`. */
  #at<T>(
    id: string, path: string, resolving: ResolveOptions, signal: AbortSignal, work: (resolved: ResolvedPath) => Promise<T>,
  ): Promise<T> {
    return withFailures(async () => {
      const asked = sandboxPath(path, resolving.isNamed === true ? 'path' : 'directory');
      try {
        const resolved = await this.#resolve(id, asked, resolving, signal);
        await using _ = resolved.stack;
        return await work(resolved);
      } catch (error) {
        throw failureOf(error, path);
      }
    });
  }

  async #resolve(
    id: string, path: string, { followLink, makeParents, isNamed }: ResolveOptions, signal: AbortSignal,
  ): Promise<ResolvedPath> {
    const { workspace, root, ended, stack } = await this.#enter(id, signal);
    await using opened = stack;
    const parts = workspaceParts(path, workspace, 'path');
    if (parts.length === 0 && isNamed === true) {
      throw refusedFiles('path', `${quotedName(path)} is the working directory itself; choose a path below it`);
    }
    const base = await realpath(workspace.folder);
    const resolve = async (names: readonly string[]): Promise<readonly string[]> => {
      const below = partsBelow(base, await realpath(join(base, ...names)));
      if (below === null) throw refusedFiles('path', `${quotedName(path)} leads out of the sandbox, which shares this host`);
      return below;
    };
    const walk = opened.use(new FolderWalk(root));
    const whole = followLink === true ? await resolve(parts).catch(ignoring('ENOENT')) : null;
    const resolvedParts = whole ?? [...await resolveParents(parts.slice(0, -1), resolve, makeParents === true), ...parts.slice(-1)];
    const folder = await walk.enter(tarName(resolvedParts.slice(0, -1)), makeParents);
    const name = resolvedParts.at(-1) ?? '.';
    const found = await lstat(folder.within(name)).catch(ignoring('ENOENT'));
    return { folder, name, path, found, ended, stack: opened.move() };
  }
}

/** Resolves the links in the existing part of a path. The missing part stays as it is. */
async function resolveParents(
  parts: readonly string[], resolve: (names: readonly string[]) => Promise<readonly string[]>, mayBeMissing: boolean,
): Promise<readonly string[]> {
  for (let depth = parts.length; ; depth -= 1) {
    const there = await resolve(parts.slice(0, depth)).catch(ignoring(...(mayBeMissing && depth > 0 ? ['ENOENT'] : [])));
    if (there !== null) return [...there, ...parts.slice(depth)];
  }
}

/** System errors about the path itself, and not about the disk. */
const pathErrors = new Set(['EACCES', 'EPERM', 'EISDIR', 'EINVAL', 'EILSEQ', 'EBUSY', 'ENOTEMPTY', 'EEXIST', 'ENXIO']);

function failureOf(error: unknown, path: string): unknown {
  const code = errorCode(error) ?? '';
  if (code === 'ENOENT' || code === 'ELOOP' || code === 'ENAMETOOLONG') return new Failure('file_not_found', { path }, { cause: error });
  if (code === 'ENOTDIR') return wrongFileType(posix.dirname(path), 'file');
  return pathErrors.has(code) ? refusedFiles('path', `${quotedName(path)} can't be used for this request (${code})`) : error;
}

function requireFound({ found, path }: Pick<ResolvedPath, 'found' | 'path'>): Stats {
  if (found === null) throw new Failure('file_not_found', { path });
  return found;
}

/** Returns null if the entry is no file. */
function versionOf(found: Stats | null): FileVersion | null {
  return found?.isFile() === true ? { size: found.size, modifiedAt: found.mtimeMs } : null;
}

function typeOf(found: Pick<Stats, 'isFile' | 'isDirectory' | 'isSymbolicLink'>): FileType {
  if (found.isFile()) return 'file';
  if (found.isDirectory()) return 'directory';
  return found.isSymbolicLink() ? 'symlink' : 'other';
}

/** Returns the entry for `path`, which is at the path `real` of this host. */
async function entryAt(real: string | Buffer, path: string, found: Stats): Promise<FileEntry> {
  const { size, mode, mtimeMs: modifiedAt, uid, gid } = found;
  const target = found.isSymbolicLink() ? await readlink(real) : null;
  return { path, type: typeOf(found), size, mode: mode & 0o7777, modifiedAt, target, owner: { uid, gid } };
}

const gone = ignoring('ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'EINVAL');

async function* entriesIn(folder: Folder, path: string, depth: number, ended: AbortSignal): AsyncGenerator<FileEntry, void> {
  const directory = folder.within('.');
  // One character for each byte of a name.
  for await (const { name: bytes } of await opendir(directory, { encoding: 'latin1' })) {
    ended.throwIfAborted();
    const name = Buffer.from(bytes, 'latin1');
    const real = joinBytes(directory, name);
    const found = await lstat(real).catch(gone);
    const entry = found === null ? null : await entryAt(real, posix.join(path, name.toString()), found).catch(gone);
    if (entry === null) continue;
    yield entry;
    if (depth === 1 || entry.type !== 'directory') continue;
    await using below = await openFolder(real).catch(gone);
    if (below !== null) yield* entriesIn(below, entry.path, depth - 1, ended);
  }
}
