import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import type Docker from 'dockerode';
import { isFailure, isFailureOf } from '../../../domain/failure.ts';
import type { WriteOptions } from '../../../ports/sandbox-files.ts';
import type { SandboxRuntime } from '../../../ports/sandbox-runtime.ts';
import { begin, type Chunks, chunksUntil, FastPart, ofSize, wrongFileType } from '../file-content.ts';
import { refusedFiles } from '../sandbox-path.ts';
import { tarOfOne } from '../single-entry-tar.ts';
import { portFailure, sendTar } from './archive-upload.ts';
import { ContainerFiles, type PathStat, root } from './container-files.ts';
import { type Engine, statusOf, unavailable } from './engine.ts';
import { runProgram, writeCommand } from './file-programs.ts';

type Container = Docker.ContainerInspectInfo;

/** A path in a container to write or remove. */
export interface Place {
  readonly container: Container;
  readonly files: ContainerFiles;
  readonly path: string;
  /** The stat of the path. Null if nothing is there. */
  readonly found: PathStat | null;
}

/** The content to write, with a known length. */
interface GivenContent {
  readonly all: Chunks;
  readonly length: number;
  /** The permission bits. */
  readonly bits: number;
  /** True if only the beginning of the content is in memory. */
  readonly isLarge: boolean;
}

const defaultMode = 0o644;
/** A shell's exit code if the image does not have the program. */
const missingProgram = 127;

/** Writes and removes files of containers. */
export class FileWriter {
  readonly #engine: Engine;
  readonly #execute: SandboxRuntime['execute'];

  constructor(engine: Engine, execute: SandboxRuntime['execute']) {
    this.#engine = engine;
    this.#execute = execute;
  }

  /** Writes a temporary file beside the path, and then renames it. */
  async write(
    id: string, place: Place, content: ReadableStream<Uint8Array>, { mode, size }: WriteOptions, signal: AbortSignal,
  ): Promise<void> {
    const { container, path, found } = place;
    if (found?.type === 'directory') throw wrongFileType(path, found.type);
    const [unpacked, written] = [temporaryBeside(path), temporaryBeside(path)];
    const begun = await begin(chunksUntil(content, signal));
    const bits = mode ?? (found?.type === 'file' ? found.mode : defaultMode);
    const length = begun.size ?? size;
    const all = length === undefined ? begun.all : ofSize(begun.all, length);
    try {
      const isLarge = begun.size === null;
      const rest = length === undefined ? all : await this.#unpack(id, place, unpacked, { all, length, bits, isLarge }, signal);
      if (rest !== null) {
        const command = writeCommand(written, bits, rest === all ? null : unpacked);
        const { exitCode, error } = await runProgram(this.#execute, id, command, signal, rest);
        if (exitCode !== 0) throw refusedFiles('path', error);
        if (rest !== all) await this.remove(container, unpacked, signal);
      }
      await this.#replace(id, place, rest === null ? unpacked : written, signal);
    } catch (error) {
      for (const temporary of [unpacked, written]) await this.remove(container, temporary, this.#engine.closed).catch(() => {});
      throw portFailure(error);
    }
  }

  /**
   * Lets the engine unpack a file, at the speed of `docker cp`. Meanwhile the engine answers no other request about the container. So for a
   * running one, it gets only the fast part of a large content. Returns the rest. The engine keeps the part of the file that it received.
   */
  async #unpack(
    id: string, { container, files }: Place, temporary: string, { all, length, bits, isLarge }: GivenContent, signal: AbortSignal,
  ): Promise<Chunks | null> {
    const owner = (await files.owner(container.Config.User)) ?? root;
    const mayBeLate = isLarge && await this.#hasCat(id, container, signal);
    // The engine sets the file's owner only at the end. But the owner must be able to read the incomplete file.
    if (mayBeLate && (bits & (owner.uid === 0 ? 0o400 : 0o004)) === 0) return all;
    // A tar header has whole seconds, which could not tell two versions of a file apart.
    const seconds = ((performance.timeOrigin + performance.now()) / 1000).toFixed(6);
    const header = { name: posix.basename(temporary), mode: bits, size: length, ...owner, pax: { mtime: seconds } };
    const fast = mayBeLate ? new FastPart(all) : null;
    await this.#send(container, temporary, tarOfOne(header, fast ?? all), signal).catch((error: unknown) => {
      if (fast?.isLate !== true || signal.aborted) throw error;
    });
    if (fast?.isLate !== true) return null;
    if ((await files.stat(temporary))?.size !== fast.bytes) throw unavailable('the engine has not kept what it got of a file');
    return fast.rest();
  }

  async #hasCat(id: string, { State }: Container, signal: AbortSignal): Promise<boolean> {
    if (!State.Running || State.Paused) return false;
    return (await runProgram(this.#execute, id, ['cat', '/dev/null'], signal)).exitCode === 0;
  }

  /**
   * Gives the temporary file the name of the path. In a running container, a program does that in one step. Otherwise the engine creates a
   * hard link: no program runs that could see the state between, and the engine answers no other request.
   */
  async #replace(id: string, place: Place, temporary: string, signal: AbortSignal): Promise<void> {
    const { container, files, path } = place;
    const moved = await runProgram(this.#execute, id, ['mv', '-fT', temporary, path], signal).catch((error: unknown) => {
      if (isFailureOf(error, 'sandbox_not_running')) return { exitCode: missingProgram, error: '' };
      throw error;
    });
    if (moved.exitCode === 0) return;
    if (moved.exitCode !== missingProgram) {
      const found = await files.stat(path);
      throw found?.type === 'directory' ? wrongFileType(path, found.type) : refusedFiles('path', moved.error);
    }
    const linkname = posix.basename(temporary);
    const entry = { name: posix.basename(path), type: 'link', linkname } as const;
    await this.#send(container, path, tarOfOne(entry), signal);
    await this.remove(container, temporary, signal);
  }

  /**
   * Removes the path. The engine has no request for that. But before it unpacks an entry, it removes the old file of that name. So this
   * sends an entry that can't be unpacked: a hard link to a missing file.
   */
  async remove(container: Container, path: string, signal: AbortSignal): Promise<void> {
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

function temporaryBeside(path: string): string {
  return posix.join(posix.dirname(path), `.skep-${randomUUID()}`);
}
