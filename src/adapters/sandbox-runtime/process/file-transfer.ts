import { lstat, mkdir } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { onAbort } from '../../../ports/abort-signals.ts';
import { Failure } from '../../../domain/failure.ts';
import { pullStream } from '../../shared/node-streams.ts';
import { tarEnd } from '../../shared/packed-tar.ts';
import { ignoring } from '../../shared/system-errors.ts';
import { partsBelow, quotedName, refusedFiles, sandboxPath } from '../sandbox-path.ts';
import { tarEntries, tarName } from '../tar.ts';
import { packTree, unpackBelow } from './archives.ts';
import { Directories, isNotDirectory, NotDirectory } from './directories.ts';
import type { Observer } from './observed-sandbox.ts';
import { withFailures } from './runtime-failures.ts';

export type EnteredWorkspace = Awaited<ReturnType<FileTransfer['enter']>>;

/** Moves files into and out of the workspaces of sandboxes. They belong to the user of this process. */
export class FileTransfer {
  readonly #observer: Observer;
  /** Running work on the files of sandboxes. A removal ends it. */
  readonly #tasks = new Set<{ readonly id: string; readonly controller: AbortController; readonly over: PromiseWithResolvers<void> }>();

  constructor(observer: Observer) {
    this.#observer = observer;
  }

  async putFiles(id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
    try {
      const { workspace, stack, ended } = await this.enter(id, signal);
      await using _ = stack;
      const parts = workspaceParts(sandboxPath(directory, 'directory'), workspace, 'directory');
      const folder = await new Directories(workspace.folder).enter(tarName(parts), true).catch((error: unknown) => {
        if (!isNotDirectory(error)) throw error;
        throw refusedFiles('directory', `${quotedName(directory)} leads through something else than directories`);
      });
      await unpackBelow(folder, tarEntries(archive, ended));
    } finally {
      if (!archive.locked) archive.cancel().catch(() => {});
    }
  }

  async getFiles(id: string, path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    signal.throwIfAborted();
    const { workspace, stack, ended } = await this.enter(id, signal);
    await using entered = stack;
    const asked = sandboxPath(path, 'path');
    const real = await existingPath(workspace.folder, workspaceParts(asked, workspace, 'path'), path);
    const top = Buffer.from(posix.basename(asked));
    ended.throwIfAborted();
    const kept = entered.move();
    const tar = (async function* (): AsyncGenerator<Uint8Array, void> {
      try {
        yield* packTree(real, top);
      } finally {
        await kept.disposeAsync();
      }
      // A reader may end at once when it has this, so nothing is left to do.
      yield tarEnd;
    })();
    const end = async (): Promise<void> => {
      await tar.return();
      await kept.disposeAsync();
    };
    // Does not wait for a reader that does not read on.
    kept.use(onAbort(ended, () => void end().catch(() => {})));
    const next = (): Promise<IteratorResult<Uint8Array, void>> => withFailures(async () => {
      const part = await tar.next();
      ended.throwIfAborted();
      return part;
    });
    return pullStream(next, end);
  }

  /** Begins work in the workspace of a sandbox. A removal ends the work through `ended`, and waits until the stack is disposed of. */
  async enter(id: string, signal: AbortSignal) {
    const task = { id, controller: new AbortController(), over: Promise.withResolvers<void>() };
    const ended = AbortSignal.any([signal, task.controller.signal]);
    await using stack = new AsyncDisposableStack();
    this.#tasks.add(task);
    stack.defer(() => {
      this.#tasks.delete(task);
      task.over.resolve();
    });
    ended.throwIfAborted();
    const { record } = await this.#observer.observe(id);
    if (record === null) throw new Failure('sandbox_not_found', { id });
    const { workspace: folder } = this.#observer.layout.sandbox(id);
    await mkdir(folder, { recursive: true });
    const found = await lstat(folder);
    if (!found.isDirectory()) throw new NotDirectory([], found.isSymbolicLink());
    const workspace: Workspace = { folder, workingDir: record.claim?.plan.workingDir };
    return { workspace, ended, stack: stack.move() };
  }

  /** Ends the work on one sandbox, or on all, with this failure. Returns when the work has ended. */
  async end(reason: Failure, id?: string): Promise<void> {
    const ended = [...this.#tasks].filter((task) => id === undefined || task.id === id);
    for (const { controller } of ended) controller.abort(reason);
    await Promise.all(ended.map(({ over }) => over.promise));
  }
}

/** The working directory of programs if the launch has none. */
const defaultWorkingDir = '/workspace';

/** The host's folder of a sandbox's files, and the working directory that its programs use for it. */
interface Workspace {
  readonly folder: string;
  readonly workingDir: string | undefined;
}

/**
 * Returns the part of a path below the workspace. Also accepts the workspace's path on the host. Throws `invalid_request` for any other
 * path: the rest of the host does not belong to the sandbox.
 */
export function workspaceParts(path: string, workspace: Workspace, member: 'path' | 'directory'): readonly string[] {
  const parts = partsIn(workspace, path);
  if (parts !== null) return parts;
  const hint = `choose a place below ${quotedName(workspace.workingDir ?? defaultWorkingDir)}`;
  throw refusedFiles(member, `${quotedName(path)} is not the sandbox's own, which shares this host; ${hint}`);
}

/** Returns the path on the host for a program of the sandbox. Without isolation, the program sees the whole host. */
export function hostPath(path: string, workspace: Workspace): string {
  const parts = partsIn(workspace, path);
  return parts === null ? path : join(workspace.folder, ...parts);
}

function partsIn({ folder, workingDir = defaultWorkingDir }: Workspace, path: string): readonly string[] | null {
  return partsBelow(folder, path) ?? partsBelow(workingDir, path);
}

/** Returns the path on the host of what is at the path. Follows no links. Throws `file_not_found` if nothing is there. */
async function existingPath(folder: string, parts: readonly string[], path: string): Promise<Buffer> {
  const directories = new Directories(folder);
  const names = tarName(parts);
  try {
    await directories.enter(names.slice(0, -1));
    const real = directories.path(names);
    await lstat(real);
    return real;
  } catch (error) {
    if (!isNotDirectory(error)) ignoring('ENOENT', 'ENAMETOOLONG')(error);
    throw new Failure('file_not_found', { path });
  }
}
