import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import type Docker from 'dockerode';
import { Failure, isFailure, isFailureOf } from '../../../domain/failure.ts';
import type { FileEntry } from '../../../domain/file-entry.ts';
import type { ByteRange, FileReading, SandboxFiles, WriteOptions } from '../../../ports/sandbox-files.ts';
import type { SandboxRuntime } from '../../../ports/sandbox-runtime.ts';
import { begin, chunksUntil, demandFile, ofSize, rangeOf, wrongFileType } from '../file-content.ts';
import { sandboxPath, quoted, refusedFiles } from '../sandbox-path.ts';
import { tarOfOne } from '../single-entry-tar.ts';
import { portFailure, sendTar } from './archive-upload.ts';
import { ContainerFiles, type OpenedPath, type PathStat, resolveOwner } from './container-files.ts';
import { entriesByProgram, entriesOfArchive } from './directory-listing.ts';
import { type Engine, findContainer, statusOf, unavailable, withFailures } from './engine.ts';
import { demandReachable, isReadOnly, putFiles, type Transfers } from './file-transfer.ts';
import { runProgram, writeCommand } from './file-programs.ts';

type Container = Docker.ContainerInspectInfo;

/** A place in a container where something is to be written or removed. */
interface Place {
  readonly container: Container;
  readonly files: ContainerFiles;
  readonly path: string;
  /** What is there. */
  readonly found: PathStat | null;
}

const defaultMode = 0o644;
/** How a shell reports that the image has no such program. */
const missingProgram = 127;
/** Two zero blocks: a tar of nothing. */
const emptyTar = new Uint8Array(1024);

/**
 * Files by the engine's archives, which reach into running, frozen and stopped containers. What these can't do is done by programs of the
 * image, in running containers.
 */
export class DockerFiles implements SandboxFiles {
  readonly #engine: Engine;
  readonly #execute: SandboxRuntime['execute'];
  readonly #transfers: Transfers;

  constructor(engine: Engine, execute: SandboxRuntime['execute'], transfers: Transfers) {
    this.#engine = engine;
    this.#execute = execute;
    this.#transfers = transfers;
  }

  stat(id: string, path: string, followLink: boolean, signal: AbortSignal): Promise<FileEntry> {
    return withFailures(async () => {
      const { entry, close } = await this.#open(id, path, followLink, signal);
      close();
      return entry;
    });
  }

  read(id: string, path: string, choose: (file: FileEntry) => ByteRange, signal: AbortSignal): Promise<FileReading> {
    return withFailures(async () => {
      const { entry, content, close } = await this.#open(id, path, true, this.#transfers.until(id, signal));
      try {
        demandFile(entry);
        return { file: entry, content: rangeOf(content, choose(entry), entry.size, close) };
      } catch (error) {
        close();
        throw error;
      }
    });
  }

  async write(
    id: string, path: string, content: ReadableStream<Uint8Array>, options: WriteOptions, given: AbortSignal,
  ): Promise<FileEntry> {
    const signal = this.#transfers.until(id, given);
    try {
      return await withFailures(async () => {
        const place = await this.#place(id, sandboxPath(path, 'path'), true, signal);
        await this.#demandWritable(id, place, signal);
        await this.#write(id, place, content, options, signal);
        return { ...await this.stat(id, place.path, true, signal), path: sandboxPath(path, 'path') };
      });
    } finally {
      if (!content.locked) content.cancel().catch(() => {});
    }
  }

  makeDirectory(id: string, path: string, signal: AbortSignal): Promise<boolean> {
    return withFailures(async () => {
      const { found } = await this.#place(id, sandboxPath(path, 'directory'), true, signal);
      if (found?.type === 'directory') return false;
      if (found !== null) throw wrongFileType(path, found.type);
      await putFiles(this.#engine, id, path, ReadableStream.from([emptyTar]), signal);
      return true;
    });
  }

  remove(id: string, path: string, recursive: boolean, signal: AbortSignal): Promise<void> {
    return withFailures(async () => {
      const { container, found, path: at } = await this.#place(id, sandboxPath(path, 'path'), false, signal);
      if (found === null) throw new Failure('file_not_found', { path });
      if (found.type === 'directory' && !recursive) throw wrongFileType(path, found.type);
      await this.#discard(container, at, signal);
    });
  }

  move(id: string, from: string, to: string, signal: AbortSignal): Promise<void> {
    return withFailures(async () => {
      const source = await this.#place(id, sandboxPath(from, 'path'), false, signal);
      if (source.found === null) throw new Failure('file_not_found', { path: from });
      const target = await this.#place(id, sandboxPath(to, 'path'), false, signal);
      if (target.found?.type === 'directory') throw wrongFileType(to, target.found.type);
      // Makes nothing if the sandbox does not run.
      await runProgram(this.#execute, id, ['true'], signal);
      await this.#demandWritable(id, target, signal);
      const { exitCode, error } = await runProgram(this.#execute, id, ['mv', '-fT', source.path, target.path], signal);
      if (exitCode !== 0) throw refusedFiles('path', error);
    });
  }

  async *list(id: string, path: string, depth: number, signal: AbortSignal): AsyncGenerator<FileEntry, void> {
    const place = sandboxPath(path, 'directory');
    const { files, path: at, found } = await withFailures(() => this.#place(id, place, true, signal));
    if (found === null) throw new Failure('file_not_found', { path });
    if (found.type !== 'directory') throw wrongFileType(path, found.type);
    const entries = (await entriesByProgram(this.#execute, id, at, depth, signal)) ?? entriesOfArchive(files, id, at, depth, signal);
    for await (const entry of entries) yield { ...entry, path: posix.join(place, entry.path) };
  }

  /** Opens what is there. Throws `sandbox_not_found`, `file_not_found`. */
  async #open(id: string, given: string, followLink: boolean, signal: AbortSignal): Promise<OpenedPath> {
    const asked = sandboxPath(given, 'directory');
    const { files, path, found } = await this.#place(id, asked, followLink, signal);
    if (found === null) throw new Failure('file_not_found', { path: given });
    for (;;) {
      const opened = await files.open(path, signal);
      if (opened !== null) return { ...opened, entry: { ...opened.entry, path: asked } };
    }
  }

  /** Finds a path. A link that leads to something is followed if asked to. */
  async #place(id: string, path: string, followLink: boolean, signal: AbortSignal): Promise<Place> {
    const container = await findContainer(this.#engine, id, signal);
    demandReachable(container, path, 'path');
    const files = new ContainerFiles(this.#engine, container.Id);
    const found = await this.#stat(files, path);
    if (found?.type !== 'symlink' || !followLink) return { container, files, path, found };
    demandReachable(container, found.linkTarget, 'path');
    const target = await this.#stat(files, found.linkTarget);
    return target === null ? { container, files, path, found } : { container, files, path: found.linkTarget, found: target };
  }

  /** The engine has an error of its own for a path through something else than a directory. */
  async #stat(files: ContainerFiles, path: string): Promise<PathStat | null> {
    try {
      return await files.stat(path);
    } catch (error) {
      if (statusOf(error) !== 500 || path === '/') throw error;
      const parent = posix.dirname(path);
      const above = await this.#stat(files, parent);
      const type = above?.type === 'symlink' ? (await this.#stat(files, above.linkTarget))?.type : above?.type;
      throw type === undefined || type === 'directory' ? error : wrongFileType(parent, type);
    }
  }

  /** Makes the directories above the place. Throws `invalid_request` if it is read-only. */
  async #demandWritable(id: string, { container, path }: Place, signal: AbortSignal): Promise<void> {
    if (isReadOnly(container, path)) throw refusedFiles('path', `${quoted(path)} is read-only in this sandbox`);
    await this.makeDirectory(id, posix.dirname(path), signal);
  }

  /** Writes a file beside the place, which then takes its name. */
  async #write(
    id: string, place: Place, content: ReadableStream<Uint8Array>, { mode, size }: WriteOptions, signal: AbortSignal,
  ): Promise<void> {
    const { container, files, path, found } = place;
    if (found?.type === 'directory') throw wrongFileType(path, found.type);
    const temporary = posix.join(posix.dirname(path), `.skep-${randomUUID()}`);
    const begun = await begin(chunksUntil(content, signal));
    const bits = mode ?? (found?.type === 'file' ? found.mode : defaultMode);
    const length = begun.size ?? size;
    try {
      // While the engine unpacks a content that is not all there yet, it would answer nothing else about the container.
      if (length === undefined || (begun.size === null && await this.#hasCat(id, container, signal))) {
        const all = length === undefined ? begun.all : ofSize(begun.all, length);
        const { exitCode, error } = await runProgram(this.#execute, id, writeCommand(temporary, bits), signal, all);
        if (exitCode !== 0) throw refusedFiles('path', error);
      } else {
        const owner = (await resolveOwner(container.Config.User, (file) => files.text(file))) ?? { uid: 0, gid: 0 };
        // In the header itself a time has whole seconds, by which two versions of a file could not be told apart.
        const seconds = ((performance.timeOrigin + performance.now()) / 1000).toFixed(6);
        const header = { name: posix.basename(temporary), mode: bits, size: length, ...owner, pax: { mtime: seconds } };
        await this.#send(container, temporary, tarOfOne(header, begun.all), signal);
      }
      await this.#replace(id, place, temporary, signal);
    } catch (error) {
      await this.#discard(container, temporary, this.#engine.closed).catch(() => {});
      throw portFailure(error);
    }
  }

  async #hasCat(id: string, { State }: Container, signal: AbortSignal): Promise<boolean> {
    if (!State.Running || State.Paused) return false;
    return (await runProgram(this.#execute, id, ['cat', '/dev/null'], signal)).exitCode === 0;
  }

  /**
   * Gives the temporary file the name of the path. In a running container a program does that, at one moment. Otherwise the engine makes
   * a second name for the file: nothing runs that could look meanwhile, and the engine answers nobody else.
   */
  async #replace(id: string, place: Place, temporary: string, signal: AbortSignal): Promise<void> {
    const { container, files, path } = place;
    const moved = await runProgram(this.#execute, id, ['mv', '-fT', temporary, path], signal).catch((error: unknown) => {
      if (isFailureOf(error, 'sandbox_not_running')) return { exitCode: missingProgram, error: '' };
      throw error;
    });
    if (moved.exitCode === 0) return;
    if (moved.exitCode !== missingProgram) {
      const found = await this.#stat(files, path);
      throw found?.type === 'directory' ? wrongFileType(path, found.type) : refusedFiles('path', moved.error);
    }
    const linkname = posix.basename(temporary);
    const entry = { name: posix.basename(path), type: 'link', linkname } as const;
    await this.#send(container, path, tarOfOne(entry), signal);
    await this.#discard(container, temporary, signal);
  }

  /**
   * Removes what is at the path. The engine has no request for that. But before it unpacks an entry of an archive, it removes what has
   * its name; so it gets one that can't be unpacked, a link to a file that is not there.
   */
  async #discard(container: Container, path: string, signal: AbortSignal): Promise<void> {
    const entry = { name: posix.basename(path), type: 'link', linkname: `.skep-${randomUUID()}` } as const;
    const error = await this.#send(container, path, tarOfOne(entry), signal).then(() => null, (error: unknown) => error);
    if (error !== null && (isFailure(error) || statusOf(error) === null)) throw error;
    const left = await new ContainerFiles(this.#engine, container.Id).stat(path);
    if (left !== null) throw error ?? unavailable('the engine removed nothing');
  }

  #send(container: Container, path: string, tar: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    const target = { directory: posix.dirname(path), keepDirectories: false };
    return sendTar(this.#engine, container.Id, target, tar, signal);
  }
}
