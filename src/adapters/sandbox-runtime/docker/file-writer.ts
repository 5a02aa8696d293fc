import { posix } from 'node:path';
import type Docker from 'dockerode';
import { Failure, isFailureOf } from '../../../domain/failure.ts';
import { raceSignal } from '../../../ports/abort-signals.ts';
import type { WriteOptions } from '../../../ports/sandbox-files.ts';
import type { Execution } from '../../../ports/sandbox-runtime.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { temporaryName } from '../../shared/temporary-name.ts';
import { startDelay } from '../../shared/timeout.ts';
import { isForkError, readText } from '../script-result.ts';
import { chunksUntil, requireReplaceable, wrongFileType } from '../file-content.ts';
import { refusedFiles } from '../sandbox-path.ts';
import { type ContainerFiles, diskFull, type Owner, type PathStat, root, unpackFailure } from './container-files.ts';
import { type Engine, unavailable } from './engine.ts';
import { tarOfOne } from './single-entry-tar.ts';
import { type Chunks, FastPart, ofSize, readStart } from './upload-streams.ts';

/**
 * Runs a program of the image in a running container. With `input`, it reads its standard input. It must not leave processes behind that
 * write to its outputs.
 */
export type StartProgram = (id: string, command: readonly string[], input: boolean, signal: AbortSignal) => Promise<Execution>;

export interface ResolvedPath {
  readonly container: Docker.ContainerInspectInfo;
  readonly files: ContainerFiles;
  readonly path: string;
  /** The stat of the path. Null if nothing is there. */
  readonly found: PathStat | null;
}

/** Returns null if the entry is no file. */
export function fileOf(found: PathStat | null): PathStat | null {
  return found?.type === 'file' ? found : null;
}

const defaultMode = 0o644;
/** A shell's exit code if the image does not have the program. */
const missingProgram = 127;
/** The exit code for a lost connection. A shell also returns 126, but then it prints a message. */
const brokenConnection = 126;

export class FileWriter {
  readonly #engine: Engine;
  readonly #startProgram: StartProgram;
  readonly #replacements = new KeyedMutex();

  constructor(engine: Engine, startProgram: StartProgram) {
    this.#engine = engine;
    this.#startProgram = startProgram;
  }

  /**
   * Writes a temporary file beside the path, and then renames it. Returns the file's owner. Null if a program created the file. If it
   * fails, a part of the content may be unread. `signal` must fire after the call, which cancels that part.
   */
  async write(
    id: string, resolved: ResolvedPath, content: ReadableStream<Uint8Array>, { mode, size, check }: WriteOptions, signal: AbortSignal,
  ): Promise<Owner | null> {
    const { container, files, path, found } = resolved;
    if (found !== null) requireReplaceable(path, found.type);
    const [unpacked, written] = [temporaryBeside(path), temporaryBeside(path)];
    const start = await readStart(chunksUntil(content, signal));
    const owner = (await files.owner(container.Config.User)) ?? root;
    const bits = mode ?? (found?.type === 'file' ? found.mode : defaultMode);
    const length = start.size ?? size;
    const all = length === undefined ? start.all : ofSize(start.all, length);
    try {
      const isLarge = start.size === null;
      const rest = length === undefined ? all : await this.#unpack(id, resolved, unpacked, all, { length, bits, owner, isLarge }, signal);
      if (rest !== null) {
        const command = writeCommand(written, bits, rest === all ? null : unpacked);
        const { exitCode, error } = await runProgram(this.#startProgram, id, command, signal, rest);
        if (exitCode !== 0) throw diskFull(error) ?? refusedFiles('path', error);
        if (rest !== all) await files.remove(unpacked, signal);
      }
      await this.#replacements.runExclusive(`${id} ${path}`, async () => {
        if (check !== undefined) check(fileOf(await files.stat(path)));
        await this.#replace(id, resolved, rest === null ? unpacked : written, signal);
      }, signal);
      return rest === null ? owner : null;
    } catch (error) {
      for (const temporary of [unpacked, written]) await files.remove(temporary, this.#engine.closed).catch(() => {});
      throw unpackFailure(error);
    }
  }

  /**
   * Lets the engine unpack a file, at the speed of `docker cp`. Meanwhile the engine answers no other request about the container. So for a
   * running one, it gets only the fast part of a large content. Returns the rest. The engine keeps the part of the file that it received.
   */
  async #unpack(
    id: string, { container, files }: ResolvedPath, temporary: string, all: Chunks,
    { length, bits, owner, isLarge }: { readonly length: number; readonly bits: number; readonly owner: Owner; readonly isLarge: boolean },
    signal: AbortSignal,
  ): Promise<Chunks | null> {
    const mayBeLate = isLarge && await this.#hasCat(id, container, signal);
    // The engine sets the file's owner only at the end. But the owner must be able to read the incomplete file.
    if (mayBeLate && (bits & (owner.uid === 0 ? 0o400 : 0o004)) === 0) return all;
    // A tar header has whole seconds, so two versions of a file could have one time.
    const seconds = ((performance.timeOrigin + performance.now()) / 1000).toFixed(6);
    const header = { name: posix.basename(temporary), mode: bits, size: length, ...owner, pax: { mtime: seconds } };
    const fast = mayBeLate ? new FastPart(all) : null;
    const unpacking = files.unpack({ path: posix.dirname(temporary) }, tarOfOne(header, fast ?? all), signal);
    await unpacking.catch((error: unknown) => {
      if (fast?.isLate !== true || signal.aborted) throw error;
    });
    if (fast?.isLate !== true) return null;
    if ((await files.stat(temporary))?.size !== fast.bytes) throw unavailable('the engine did not store the uploaded bytes');
    return fast.rest();
  }

  async #hasCat(id: string, { State }: Docker.ContainerInspectInfo, signal: AbortSignal): Promise<boolean> {
    if (!State.Running || State.Paused) return false;
    return (await runProgram(this.#startProgram, id, ['cat', '/dev/null'], signal)).exitCode === 0;
  }

  /**
   * Gives the temporary file the name of the path. In a running container, a program does that in one step. Otherwise the engine creates a
   * hard link: no program runs that could see the state between, and the engine answers no other request.
   */
  async #replace(id: string, { files, path }: ResolvedPath, temporary: string, signal: AbortSignal): Promise<void> {
    const moved = await runProgram(this.#startProgram, id, ['mv', '-fT', temporary, path], signal).catch((error: unknown) => {
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
  return posix.join(posix.dirname(path), temporaryName());
}

/** How long to wait for the end of a program. In a frozen container, it does not end. */
const killMs = 10_000;

/**
 * Runs a program of the image in a running container, with the content as its input. If the signal fires, the program is killed, and the
 * call rejects with the signal's reason.
 */
export async function runProgram(
  start: StartProgram, id: string, command: readonly string[], signal: AbortSignal, content: AsyncIterable<Uint8Array> | null = null,
): Promise<{ readonly exitCode: number; readonly error: string }> {
  // A command whose start was cancelled could still begin later.
  using later = startDelay(signal, killMs);
  const execution = await start(id, command, content !== null, later.signal);
  const work = async () => {
    const output = Promise.all([execution.stdout.cancel(), readText(execution.stderr, endless)]);
    await Promise.all([output, feed(execution, content)]);
    const [, error] = await output;
    const exitCode = await execution.exited;
    if (exitCode === null) throw new Failure('sandbox_not_running', { id, status: 'changing' });
    if (exitCode === brokenConnection && error === '') throw unavailable('the connection to its engine failed');
    if (exitCode !== 0 && isForkError(error)) throw unavailable({ code: 'process_limit_reached' });
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
const endless = (): Failure => refusedFiles('path', 'a program that the sandbox needs for it prints too many errors');

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

/** Returns a command that copies the file `begunAs`, if given, and then its input into the file `$1`, with the mode `$2`. */
function writeCommand(path: string, mode: number, begunAs: string | null): string[] {
  const script = 'umask 077; cat "$3" - > "$1" && chmod "$2" "$1"';
  return ['/bin/sh', '-c', script, 'skep-write', path, mode.toString(8), begunAs ?? '/dev/null'];
}
