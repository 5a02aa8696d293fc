import type { Dir, Stats } from 'node:fs';
import { lstat, mkdir, open, opendir, readlink, realpath, rename, rm } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { Failure } from '../../../domain/failure.ts';
import type { FileEntry, FileType } from '../../../domain/file-entry.ts';
import { onAbort } from '../../../ports/abort-signals.ts';
import type { ByteRange, FileReading, FileVersion, SandboxFiles, WriteOptions } from '../../../ports/sandbox-files.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { errorCode, ignoring } from '../../shared/system-errors.ts';
import { temporaryName } from '../../shared/temporary-name.ts';
import { chunksUntil, requireFile, requireReplaceable, rangeOf, wrongFileType } from '../file-content.ts';
import { partsBelow, quotedName, refusedFiles, sandboxPath } from '../sandbox-path.ts';
import { bytesOf, tarName } from '../tar.ts';
import { chunkBytes, Directories, joinBytes, newFile, readOnly, refuseLong } from './directories.ts';
import { type EnteredWorkspace, workspaceParts } from './file-transfer.ts';
import { withFailures } from './runtime-failures.ts';

interface ResolvedPath extends Pick<EnteredWorkspace, 'stack' | 'ended'> {
  readonly path: string;
  /** The path on the host. Only its last name can be a link. */
  readonly real: Buffer;
  /** The stat of the real path. Null if nothing is there. */
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
 * The files of workspaces. A path is resolved as the sandbox's programs do it, and refused if it leads out of the workspace. A program that
 * replaces a directory by a link meanwhile can lead out of it. It gains nothing, since it has the same rights as this process.
 */
export class ProcessFiles implements SandboxFiles {
  readonly #enter: (id: string, signal: AbortSignal) => Promise<EnteredWorkspace>;
  readonly #replacements = new KeyedMutex();

  constructor(enter: (id: string, signal: AbortSignal) => Promise<EnteredWorkspace>) {
    this.#enter = enter;
  }

  stat(id: string, path: string, followLink: boolean, signal: AbortSignal): Promise<FileEntry> {
    return this.#at(id, path, { followLink }, signal, async (resolved) =>
      entryAt(resolved.real, resolved.path, requireFound(resolved)));
  }

  read(id: string, path: string, choose: (file: FileEntry) => ByteRange, signal: AbortSignal): Promise<FileReading> {
    return this.#at(id, path, { followLink: true }, signal, async (resolved) => {
      const { real } = resolved;
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
      kept.use(onAbort(resolved.ended, () => {
        source.destroy(resolved.ended.reason instanceof Error ? resolved.ended.reason : undefined);
        close();
      }));
      return { file, content: rangeOf(source, { offset: 0, length }, file.size - offset, close) };
    });
  }

  async write(
    id: string, path: string, content: ReadableStream<Uint8Array>, { mode, check }: WriteOptions, signal: AbortSignal,
  ): Promise<FileEntry> {
    try {
      return await this.#at(id, path, { followLink: true, makeParents: true, isNamed: true }, signal, async (resolved) => {
        const { real, found } = resolved;
        if (found !== null) requireReplaceable(path, typeOf(found));
        check?.(versionOf(found));
        const temporary = joinBytes(real.subarray(0, real.lastIndexOf('/')), Buffer.from(temporaryName()));
        await using handle = await open(temporary, newFile, 0o600);
        try {
          for await (const chunk of chunksUntil(content, resolved.ended)) await handle.writeFile(chunk);
          resolved.ended.throwIfAborted();
          await handle.chmod(mode ?? (found?.isFile() === true ? found.mode & 0o7777 : defaultMode));
          await this.#replacements.runExclusive(id, async () => {
            if (check !== undefined) check(versionOf(await lstat(real).catch(ignoring('ENOENT'))));
            await rename(temporary, real);
          });
        } catch (error) {
          await rm(temporary, { force: true });
          throw error;
        }
        return await entryAt(real, resolved.path, await handle.stat());
      });
    } finally {
      if (!content.locked) content.cancel().catch(() => {});
    }
  }

  makeDirectory(id: string, path: string, signal: AbortSignal): Promise<boolean> {
    return this.#at(id, path, { followLink: true, makeParents: true }, signal, async ({ real, found }) => {
      // Another caller may create it meanwhile.
      if (found === null && (await mkdir(real, 0o755).then(() => true, ignoring('EEXIST'))) === true) return true;
      const existing = found ?? (await lstat(real));
      if (!existing.isDirectory()) throw wrongFileType(path, typeOf(existing));
      return false;
    });
  }

  remove(id: string, path: string, recursive: boolean, signal: AbortSignal): Promise<void> {
    return this.#at(id, path, { isNamed: true }, signal, async (resolved) => {
      if (requireFound(resolved).isDirectory() && !recursive) throw wrongFileType(path, 'directory');
      await rm(resolved.real, { recursive });
    });
  }

  move(id: string, from: string, to: string, signal: AbortSignal): Promise<void> {
    return this.#at(id, from, { isNamed: true }, signal, async (source) => {
      const moved = requireFound(source);
      await this.#at(id, to, { isNamed: true, makeParents: true }, signal, async (target) => {
        if (target.found !== null) requireReplaceable(to, typeOf(target.found), typeOf(moved));
        await rename(source.real, target.real);
      });
    });
  }

  async *list(id: string, path: string, depth: number, signal: AbortSignal): AsyncGenerator<FileEntry, void> {
    const resolved = await this.#at(id, path, { followLink: true }, signal, async (resolved) => {
      const found = requireFound(resolved);
      if (!found.isDirectory()) throw wrongFileType(path, typeOf(found));
      const directory = await openDirectory(resolved.real);
      return { ...resolved, directory, stack: resolved.stack.move() };
    });
    await using _ = resolved.stack;
    yield* entriesIn(resolved.directory, resolved, depth);
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
    const { workspace, ended, stack } = await this.#enter(id, signal);
    await using entered = stack;
    const parts = workspaceParts(path, workspace, 'path');
    if (parts.length === 0 && isNamed === true) {
      throw refusedFiles('path', `${quotedName(path)} is the working directory itself; choose a path below it`);
    }
    // One character for each byte, since a link can lead to a name that is not UTF-8.
    const base = await realpath(workspace.folder, 'latin1');
    const follow = async (names: readonly string[]): Promise<Buffer> => {
      const real = await realpath(join(workspace.folder, ...names), 'latin1');
      if (partsBelow(base, real) !== null) return bytesOf(real);
      throw refusedFiles('path', `${quotedName(path)} leads out of the sandbox, which shares this host`);
    };
    const target = followLink === true || parts.length === 0 ? await follow(parts).catch(ignoring('ENOENT')) : null;
    const real = target ?? joinBytes(await parentOf(parts, follow, makeParents === true), Buffer.from(parts.at(-1) ?? ''));
    const found = await lstat(real).catch(ignoring('ENOENT'));
    return { path, real, found, ended, stack: entered.move() };
  }
}

/** Returns the real path of the directory that contains the last of the names. Makes what is missing if `makes`. */
async function parentOf(names: readonly string[], follow: (names: readonly string[]) => Promise<Buffer>, makes: boolean): Promise<Buffer> {
  const parents = names.slice(0, -1);
  for (let depth = parents.length; ; depth -= 1) {
    const existing = await follow(parents.slice(0, depth)).catch(ignoring(...(makes && depth > 0 ? ['ENOENT'] : [])));
    if (existing !== null) return await new Directories(existing).enter(tarName(parents.slice(depth)), true);
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

/** Opens a directory whose names have one character for each byte. */
function openDirectory(real: Buffer): Promise<Dir> {
  return opendir(real, { encoding: 'latin1' });
}

async function* entriesIn(
  directory: Dir, { real, path, ended }: Pick<ResolvedPath, 'real' | 'path' | 'ended'>, depth: number,
): AsyncGenerator<FileEntry, void> {
  for await (const { name: bytes } of directory) {
    ended.throwIfAborted();
    const name = bytesOf(bytes);
    const inner = { real: joinBytes(real, name), path: posix.join(path, name.toString()), ended };
    const found = await lstat(inner.real).catch(refuseLong).catch(gone);
    const entry = found === null ? null : await entryAt(inner.real, inner.path, found).catch(gone);
    if (entry === null) continue;
    yield entry;
    if (depth === 1 || entry.type !== 'directory') continue;
    const below = await openDirectory(inner.real).catch(gone);
    if (below !== null) yield* entriesIn(below, inner, depth - 1);
  }
}
