import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import type Docker from 'dockerode';
import { Failure, isFailureOf } from '../../../domain/failure.ts';
import type { WriteOptions } from '../../../ports/sandbox-files.ts';
import type { Execution, SandboxRuntime } from '../../../ports/sandbox-runtime.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { readText } from '../script-result.ts';
import { chunksUntil, readAheadBytes, wrongFileType } from '../file-content.ts';
import { refusedFiles } from '../sandbox-path.ts';
import { type ContainerFiles, diskFull, type PathStat, root, unpackFailure } from './container-files.ts';
import type { Engine } from './engine.ts';
import { tarOfOne } from './single-entry-tar.ts';

type Execute = SandboxRuntime['execute'];
type Chunks = AsyncIterable<Uint8Array>;

/** A path in a container. */
export interface Place {
  readonly container: Docker.ContainerInspectInfo;
  readonly files: ContainerFiles;
  readonly path: string;
  /** The stat of the path. Null if nothing is there. */
  readonly found: PathStat | null;
}

const defaultMode = 0o644;
/** A shell's exit code if the image does not have the program. */
const missingProgram = 127;

/** Writes files of containers. */
export class FileWriter {
  readonly #engine: Engine;
  readonly #execute: Execute;

  constructor(engine: Engine, execute: Execute) {
    this.#engine = engine;
    this.#execute = execute;
  }

  /**
   * Writes a temporary file beside the path, and then renames it. The engine unpacks it, at the speed of `docker cp`. Meanwhile the engine
   * answers no other request about the container. So if the container runs and its image has `cat`, that program writes larger content.
   */
  async write(
    id: string, place: Place, content: ReadableStream<Uint8Array>, { mode, size }: WriteOptions, signal: AbortSignal,
  ): Promise<void> {
    const { container, files, path, found } = place;
    if (found?.type === 'directory') throw wrongFileType(path, found.type);
    const temporary = temporaryBeside(path);
    const bits = mode ?? (found?.type === 'file' ? found.mode : defaultMode);
    const begun = await begin(chunksUntil(content, signal));
    const length = begun.size ?? size;
    try {
      if (length === undefined || (begun.size === null && await this.#hasCat(id, container, signal))) {
        const all = length === undefined ? begun.all : ofSize(begun.all, length);
        const { exitCode, error } = await runProgram(this.#execute, id, writeCommand(temporary, bits), signal, all);
        if (exitCode !== 0) throw diskFull(error) ?? refusedFiles('path', error);
      } else {
        const owner = (await files.owner(container.Config.User)) ?? root;
        // A tar header has whole seconds, which could not tell two versions of a file apart.
        const seconds = ((performance.timeOrigin + performance.now()) / 1000).toFixed(6);
        const header = { name: posix.basename(temporary), mode: bits, size: length, ...owner, pax: { mtime: seconds } };
        await files.unpack({ path: posix.dirname(temporary) }, tarOfOne(header, ofSize(begun.all, length)), signal);
      }
      await this.#replace(id, place, temporary, signal);
    } catch (error) {
      await files.remove(temporary, this.#engine.closed).catch(() => {});
      throw unpackFailure(error);
    }
  }

  async #hasCat(id: string, { State }: Docker.ContainerInspectInfo, signal: AbortSignal): Promise<boolean> {
    if (!State.Running || State.Paused) return false;
    return (await runProgram(this.#execute, id, ['cat', '/dev/null'], signal)).exitCode === 0;
  }

  /**
   * Gives the temporary file the name of the path. In a running container, a program does that in one step. Otherwise the engine creates a
   * hard link: no program runs that could see the state between, and the engine answers no other request.
   */
  async #replace(id: string, { files, path }: Place, temporary: string, signal: AbortSignal): Promise<void> {
    const moved = await runProgram(this.#execute, id, ['mv', '-fT', temporary, path], signal).catch((error: unknown) => {
      if (isFailureOf(error, 'sandbox_not_running')) return { exitCode: missingProgram, error: '' };
      throw error;
    });
    if (moved.exitCode === 0) return;
    if (moved.exitCode !== missingProgram) {
      const found = await files.stat(path);
      throw found?.type === 'directory' ? wrongFileType(path, found.type) : refusedFiles('path', moved.error);
    }
    const link = { name: posix.basename(path), type: 'link', linkname: posix.basename(temporary) } as const;
    await files.unpack({ path: posix.dirname(path) }, tarOfOne(link), signal);
    await files.remove(temporary, signal);
  }
}

function temporaryBeside(path: string): string {
  return posix.join(posix.dirname(path), `.skep-${randomUUID()}`);
}

/** How long to wait for the end of a program. In a frozen container, it does not end. */
const killMs = 10_000;

/**
 * Runs a program of the image in a running container, with the content as its input. If the signal fires, the program is killed, and the
 * call rejects with the signal's reason.
 */
export async function runProgram(
  execute: Execute, id: string, command: readonly string[], signal: AbortSignal, content: AsyncIterable<Uint8Array> | null = null,
): Promise<{ readonly exitCode: number; readonly error: string }> {
  const execution = await execute(id, { command, workingDir: '/' }, signal);
  const work = async () => {
    const output = Promise.all([execution.stdout.cancel(), readText(execution.stderr, endless)]);
    await Promise.all([output, feed(execution, content)]);
    const [, error] = await output;
    const exitCode = await execution.exited;
    if (exitCode === null) throw new Failure('sandbox_not_running', { id, status: 'changing' });
    return { exitCode, error: error.trim() };
  };
  try {
    return await raceSignal(work(), signal);
  } catch (error) {
    await raceSignal(execution.kill(), AbortSignal.timeout(killMs)).catch(() => {});
    throw error;
  }
}

// The sandbox may have replaced the program.
const endless = (): Failure => refusedFiles('path', 'the program in the sandbox that writes it prints too many errors');

/** Writes the content to the program. If the program stops reading, its exit code shows why. */
async function feed({ stdin }: Execution, content: AsyncIterable<Uint8Array> | null): Promise<void> {
  const writer = stdin.getWriter();
  writer.closed.catch(() => {});
  let isRead = true;
  for await (const chunk of content ?? []) {
    await writer.write(chunk).catch(() => (isRead = false));
    if (!isRead) break;
  }
  await writer.close().catch(() => {});
}

/** Returns a command that copies its input into the file `$1`, with the mode `$2`. */
function writeCommand(path: string, mode: number): string[] {
  return ['/bin/sh', '-c', 'umask 077; cat > "$1" && chmod "$2" "$1"', 'skep-write', path, mode.toString(8)];
}

/**
 * Reads the start of a content into memory, up to the read-ahead limit. A short content is then complete, even if it arrives slowly. The
 * size is null if only a part was read.
 */
async function begin(content: Chunks): Promise<{ readonly all: Chunks; readonly size: number | null }> {
  const iterator = content[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let bytes = 0;
  let isWhole = false;
  while (!isWhole && bytes < readAheadBytes) {
    const { done, value } = await iterator.next();
    if (done === true) isWhole = true;
    else {
      first.push(value);
      bytes += value.length;
    }
  }
  const all = async function* all(): AsyncGenerator<Uint8Array, void> {
    yield* first.splice(0);
    if (!isWhole) yield* { [Symbol.asyncIterator]: () => iterator };
  };
  return { all: all(), size: isWhole ? bytes : null };
}

/** Yields the content. Throws `invalid_request` if its length is not `size`. */
async function* ofSize(content: Chunks, size: number): AsyncGenerator<Uint8Array, void> {
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.length;
    if (bytes > size) break;
    yield chunk;
  }
  if (bytes !== size) throw refusedFiles('path', `the content has not the ${size} bytes that it was said to have`);
}
