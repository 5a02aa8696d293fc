import { posix } from 'node:path';
import { Failure } from '../../../domain/failure.ts';
import type { FileEntry } from '../../../domain/file-entry.ts';
import type { ByteRange, FileReading, SandboxFiles, WriteOptions } from '../../../ports/sandbox-files.ts';
import { webStreamOf } from '../../shared/node-streams.ts';
import { requireFile, requireReplaceable, rangeOf, wrongFileType } from '../file-content.ts';
import { sandboxPath, quotedName, refusedFiles } from '../sandbox-path.ts';
import { uploadArchive } from './archive-upload.ts';
import { ContainerFiles, type OpenedPath, type PathStat } from './container-files.ts';
import { requireReachable, isReadOnly } from './container-mounts.ts';
import { entriesByProgram, entriesOfArchive } from './directory-listing.ts';
import { type Engine, findContainer, requireRunning, statusOf, withFailures } from './engine.ts';
import { fileOf, FileWriter, type ResolvedPath, runProgram, type StartProgram } from './file-writer.ts';

/** Two zero blocks: an empty tar. */
const emptyTar = new Uint8Array(1024);

/**
 * Reads and writes files with the engine's archives, which work in running, frozen and stopped containers. For the rest, it runs programs
 * of the image in running containers.
 */
export class DockerFiles implements SandboxFiles {
  readonly #engine: Engine;
  readonly #startProgram: StartProgram;
  readonly #writer: FileWriter;
  /** Ends the transfers of a sandbox, by its id. */
  readonly #transfers = new Map<string, AbortController>();

  constructor(engine: Engine, startProgram: StartProgram) {
    this.#engine = engine;
    this.#startProgram = startProgram;
    this.#writer = new FileWriter(engine, startProgram);
  }

  /**
   * Must be called before the state of a sandbox changes. While the engine packs or unpacks files of a container, it answers no other
   * request about it, and a slow client can make that long.
   */
  endTransfers(id: string): void {
    this.#transfers.get(id)?.abort(new Failure('sandbox_not_running', { id, status: 'changing' }));
    this.#transfers.delete(id);
  }

  /** Unpacks a tar. See the port `SandboxRuntime`. */
  async putFiles(id: string, directory: string, archive: ReadableStream<Uint8Array>, given: AbortSignal): Promise<void> {
    const signal = this.#untilChange(id, given);
    try {
      await withFailures(() => uploadArchive(this.#engine, id, sandboxPath(directory, 'directory'), archive, signal), id);
    } finally {
      if (!archive.locked) archive.cancel().catch(() => {});
    }
  }

  /** Returns a tar. See the port `SandboxRuntime`. */
  getFiles(id: string, path: string, given: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return withFailures(async () => {
      const signal = this.#untilChange(id, given);
      const asked = sandboxPath(path, 'path');
      const container = await findContainer(this.#engine, id, signal);
      requireReachable(container, asked, 'path');
      const archive = await new ContainerFiles(this.#engine, container.Id).archive(asked, signal);
      return webStreamOf(archive ?? (await this.#throwMissing(id, path, signal)));
    });
  }

  stat(id: string, path: string, followLink: boolean, signal: AbortSignal): Promise<FileEntry> {
    return withFailures(async () => {
      const asked = sandboxPath(path, 'directory');
      const resolved = await this.#resolve(id, asked, followLink, signal);
      const { found } = resolved;
      if (found !== null && resolved.path !== asked) {
        // Only an archive has the owner. A link can lead to a large directory, and the engine would begin to pack it.
        const { linkTarget: _, ...target } = found;
        return { ...target, path: asked, target: null, owner: null };
      }
      const { entry, content } = await this.#open(id, path, resolved, signal);
      content.destroy();
      return entry;
    });
  }

  read(id: string, path: string, choose: (file: FileEntry) => ByteRange, signal: AbortSignal): Promise<FileReading> {
    return withFailures(async () => {
      const ends = this.#untilChange(id, signal);
      const resolved = await this.#resolve(id, sandboxPath(path, 'directory'), true, ends);
      const { entry, content } = await this.#open(id, path, resolved, ends);
      try {
        requireFile(entry);
        return { file: entry, content: rangeOf(content, choose(entry), entry.size, () => content.destroy()) };
      } catch (error) {
        content.destroy();
        throw error;
      }
    });
  }

  async write(
    id: string, path: string, content: ReadableStream<Uint8Array>, options: WriteOptions, given: AbortSignal,
  ): Promise<FileEntry> {
    const over = new AbortController();
    const signal = AbortSignal.any([this.#untilChange(id, given), over.signal]);
    try {
      return await withFailures(async () => {
        const resolved = await this.#resolve(id, sandboxPath(path, 'path'), true, signal);
        options.check?.(fileOf(resolved.found));
        await this.#requireWritable(id, resolved, signal);
        const owner = await this.#writer.write(id, resolved, content, options, signal);
        if (owner === null) return { ...await this.stat(id, resolved.path, true, signal), path: sandboxPath(path, 'path') };
        const { linkTarget: _, ...written } = (await resolved.files.stat(resolved.path)) ?? (await this.#throwMissing(id, path, signal));
        return { ...written, path: sandboxPath(path, 'path'), target: null, owner };
      });
    } finally {
      if (!content.locked) content.cancel().catch(() => {});
      // Cancels a content of which only a part was read.
      over.abort();
    }
  }

  makeDirectory(id: string, path: string, signal: AbortSignal): Promise<boolean> {
    return withFailures(async () => {
      const { found } = await this.#resolve(id, sandboxPath(path, 'directory'), true, signal);
      if (found?.type === 'directory') return false;
      if (found !== null) throw wrongFileType(path, found.type);
      const ends = AbortSignal.any([signal, this.#engine.closed]);
      await uploadArchive(this.#engine, id, sandboxPath(path, 'directory'), ReadableStream.from([emptyTar]), ends);
      return true;
    }, id);
  }

  remove(id: string, path: string, recursive: boolean, signal: AbortSignal): Promise<void> {
    return withFailures(async () => {
      const { container, files, found, path: at } = await this.#resolve(id, sandboxPath(path, 'path'), false, signal);
      if (found === null) throw new Failure('file_not_found', { path });
      if (found.type === 'directory' && !recursive) throw wrongFileType(path, found.type);
      requireNotReadOnly(container, posix.dirname(at), at);
      await files.remove(at, signal);
    });
  }

  move(id: string, from: string, to: string, signal: AbortSignal): Promise<void> {
    return withFailures(async () => {
      const source = await this.#resolve(id, sandboxPath(from, 'path'), false, signal);
      if (source.found === null) throw new Failure('file_not_found', { path: from });
      const target = await this.#resolve(id, sandboxPath(to, 'path'), false, signal);
      if (target.found !== null) requireReplaceable(to, target.found.type, source.found.type);
      // The program below needs a running sandbox. Otherwise no directory may be created either.
      requireRunning(id, target.container);
      await this.#requireWritable(id, target, signal);
      const { exitCode, error } = await runProgram(this.#startProgram, id, ['mv', '-fT', source.path, target.path], signal);
      if (exitCode !== 0) throw refusedFiles('path', error);
    });
  }

  async *list(id: string, path: string, depth: number, signal: AbortSignal): AsyncGenerator<FileEntry, void> {
    const asked = sandboxPath(path, 'directory');
    const { files, path: at, found } = await withFailures(() => this.#resolve(id, asked, true, signal));
    if (found === null) throw new Failure('file_not_found', { path });
    if (found.type !== 'directory') throw wrongFileType(path, found.type);
    const entries = await withFailures(async () => {
      const listed = await entriesByProgram(this.#startProgram, id, at, depth, signal);
      if (listed !== null) return listed;
      const archive = await files.archive(at, signal);
      return entriesOfArchive(archive ?? (await this.#throwMissing(id, path, signal)), id, at, depth);
    });
    for await (const entry of entries) yield { ...entry, path: posix.join(asked, entry.path) };
  }

  /** Throws `sandbox_not_found`, `file_not_found`. */
  async #open(id: string, given: string, { files, path, found }: ResolvedPath, signal: AbortSignal): Promise<OpenedPath> {
    if (found === null) throw new Failure('file_not_found', { path: given });
    const opened = (await files.open(path, signal)) ?? (await this.#throwMissing(id, given, signal));
    return { ...opened, entry: { ...opened.entry, path: sandboxPath(given, 'directory') } };
  }

  /** Throws `sandbox_not_found` or `file_not_found`. The engine's response does not show which of the two is gone. */
  async #throwMissing(id: string, path: string, signal: AbortSignal): Promise<never> {
    await findContainer(this.#engine, id, signal);
    throw new Failure('file_not_found', { path });
  }

  /** Returns a signal that fires with the given one, when the runtime closes, or before the state of the sandbox changes. */
  #untilChange(id: string, signal: AbortSignal): AbortSignal {
    const end = this.#transfers.get(id) ?? new AbortController();
    this.#transfers.set(id, end);
    return AbortSignal.any([signal, end.signal, this.#engine.closed]);
  }

  /** Finds a path. With `followLink`, a link with an existing target is followed. */
  async #resolve(id: string, path: string, followLink: boolean, signal: AbortSignal): Promise<ResolvedPath> {
    const container = await findContainer(this.#engine, id, signal);
    requireReachable(container, path, 'path');
    const files = new ContainerFiles(this.#engine, container.Id);
    const found = await this.#stat(files, path);
    if (found?.type !== 'symlink' || !followLink) return { container, files, path, found };
    requireReachable(container, found.linkTarget, 'path');
    const target = await this.#stat(files, found.linkTarget);
    return target === null ? { container, files, path, found } : { container, files, path: found.linkTarget, found: target };
  }

  /** The engine answers 500 if the path leads through something other than a directory, or a link leads to itself. */
  async #stat(files: ContainerFiles, path: string): Promise<PathStat | null> {
    try {
      return await files.stat(path);
    } catch (error) {
      if (statusOf(error) !== 500 || path === '/') throw error;
      const parent = posix.dirname(path);
      const above = await this.#stat(files, parent);
      const type = above?.type === 'symlink' ? (await this.#stat(files, above.linkTarget))?.type : above?.type;
      if (type !== undefined && type !== 'directory') throw wrongFileType(parent, type);
      // Only the response to a read shows that a link leads to itself.
      const archive = await files.archive(path, this.#engine.closed);
      archive?.destroy();
      throw archive === null ? new Failure('file_not_found', { path }, { cause: error }) : error;
    }
  }

  /** Creates the directories above the path. Throws `invalid_request` if it is read-only. */
  async #requireWritable(id: string, { container, path }: ResolvedPath, signal: AbortSignal): Promise<void> {
    requireNotReadOnly(container, path, path);
    await this.makeDirectory(id, posix.dirname(path), signal);
  }
}

/** Throws `invalid_request` if the container can't write at `place`. */
function requireNotReadOnly(container: ResolvedPath['container'], place: string, path: string): void {
  if (isReadOnly(container, place)) throw refusedFiles('path', `${quotedName(path)} is read-only in this sandbox`);
}
