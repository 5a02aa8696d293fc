import { lstat, mkdir } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { pack } from 'tar-stream';
import { Failure, isFailure } from '../../../domain/failure.ts';
import { partsBelow, quoted, refusedFiles, sandboxPath } from '../sandbox-path.ts';
import { tarEntries, type TarName, tarOf } from '../tar.ts';
import type { Layout } from './data-folder.ts';
import type { Reader } from './observed-sandbox.ts';
import { createWalk, type Folder, notDirectory, openFolder } from './open-folders.ts';
import { addOpened, addTree } from './pack-files.ts';
import { errorCode, unavailable, withFailures } from './system-errors.ts';
import { enterMaking, unpackBelow } from './unpack-files.ts';

interface Files {
  putFiles(id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void>;
  getFiles(id: string, path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** Ends the work on a sandbox that is removed. */
  leave(id: string): Promise<void>;
  close(): Promise<void>;
}

/** Moves files into and out of the workspaces of sandboxes, which belong to the user of this process. */
export function createFiles(layout: Layout, reader: Reader): Files {
  const tasks = createTasks();

  async function workspaceOf(id: string): Promise<Workspace> {
    const { fact, record } = await reader.read(id);
    if (fact.state === 'absent') throw new Failure('sandbox_not_found', { id });
    const workingDir = record === null || record === 'absent' ? undefined : record.claim?.plan.workingDir;
    return { folder: layout.sandbox(id).workspace, workingDir };
  }

  return {
    async putFiles(id, directory, archive, signal) {
      const task = tasks.begin(id);
      const ended = AbortSignal.any([signal, task.signal]);
      try {
        await withFailures(async () => {
          ended.throwIfAborted();
          const workspace = await workspaceOf(id);
          const parts = workspaceParts(sandboxPath(directory, 'directory'), workspace, 'directory');
          await using root = await openWorkspace(workspace);
          await using place = await enterPlace(root, parts, directory);
          await unpackBelow(place.folder, tarEntries(archive, ended));
        });
      } finally {
        if (!archive.locked) archive.cancel().catch(() => {});
        task.over();
      }
    },
    async getFiles(id, path, signal) {
      signal.throwIfAborted();
      const task = tasks.begin(id);
      const ended = AbortSignal.any([signal, task.signal]);
      const stack = new AsyncDisposableStack();
      const over = async (): Promise<void> => {
        await stack.disposeAsync();
        task.over();
      };
      try {
        const place = sandboxPath(path, 'path');
        const { folder, name } = await withFailures(async () => {
          const workspace = await workspaceOf(id);
          const root = stack.use(await openWorkspace(workspace));
          return findPlace(root, workspaceParts(place, workspace, 'path'), path, stack);
        });
        const tar = pack();
        const parts = [posix.basename(place)];
        const stop = (): void => tar.destroy(ended.reason instanceof Error ? ended.reason : unavailable('it was ended'));
        ended.addEventListener('abort', stop);
        if (ended.aborted) stop();
        const fill = async (): Promise<void> => {
          try {
            await withFailures(() => (name === null ? addOpened(tar, folder, parts) : addTree(tar, folder, name, parts)));
          } finally {
            ended.removeEventListener('abort', stop);
            await over();
          }
        };
        return ReadableStream.from(tarOf(tar, fill));
      } catch (error) {
        await over();
        throw error;
      }
    },
    leave: (id) => tasks.end(new Failure('sandbox_not_found', { id }), id),
    close: () => tasks.end(unavailable('it is closed')),
  };
}

async function openWorkspace({ folder }: Workspace): Promise<Folder> {
  await mkdir(folder, { recursive: true });
  return openFolder(folder);
}

/** Work on the files of sandboxes that is under way, which a removal ends. */
interface Tasks {
  /** Answers with the signal that ends the work, and how to say that it is over. */
  begin(id: string): { readonly signal: AbortSignal; readonly over: () => void };
  /** Ends the work on one sandbox, or on all, with the reason, and waits for it. */
  end(reason: Error, id?: string): Promise<void>;
}

interface Task {
  readonly id: string;
  readonly controller: AbortController;
  readonly over: PromiseWithResolvers<void>;
}

function createTasks(): Tasks {
  const tasks = new Set<Task>();
  return {
    begin(id) {
      const task: Task = { id, controller: new AbortController(), over: Promise.withResolvers() };
      tasks.add(task);
      return {
        signal: task.controller.signal,
        over() {
          tasks.delete(task);
          task.over.resolve();
        },
      };
    },
    async end(reason, id) {
      const ended = [...tasks].filter((task) => id === undefined || task.id === id);
      for (const { controller } of ended) controller.abort(reason);
      await Promise.all(ended.map(({ over }) => over.promise));
    },
  };
}

/** Where programs find the workspace when the launch does not say. */
const usualWorkingDir = '/workspace';

/** The host's folder of a sandbox's own files, and what its programs know it as. */
interface Workspace {
  readonly folder: string;
  readonly workingDir: string | undefined;
}

/**
 * What of a path lies in the workspace, part by part; the workspace's own path on the host is understood as well. Throws
 * `invalid_request` for any other: the rest of the host is not the sandbox's.
 */
function workspaceParts(path: string, workspace: Workspace, member: 'path' | 'directory'): readonly string[] {
  const parts = partsIn(workspace, path);
  if (parts !== null) return parts;
  throw refusedFiles(member, `${quoted(path)} is not the sandbox's own, which shares this host; choose a place below ${quoted(workspace.workingDir ?? usualWorkingDir)}`);
}

/** Where a program of the sandbox finds the path: without isolation, all of the host can be seen. */
export function hostPath(path: string, workspace: Workspace): string {
  const parts = partsIn(workspace, path);
  return parts === null ? path : join(workspace.folder, ...parts);
}

function partsIn({ folder, workingDir = usualWorkingDir }: Workspace, path: string): readonly string[] | null {
  return partsBelow(folder, path) ?? partsBelow(workingDir, path);
}

interface Place extends AsyncDisposable {
  readonly folder: Folder;
}

/** The directory that an archive is unpacked in, which is made where it is not there. */
async function enterPlace(root: Folder, parts: TarName, directory: string): Promise<Place> {
  const walk = createWalk(root);
  try {
    const folder = await enterMaking(walk, parts);
    return { folder, [Symbol.asyncDispose]: () => walk[Symbol.asyncDispose]() };
  } catch (error) {
    await walk[Symbol.asyncDispose]();
    if (isFailure(error)) throw refusedFiles('directory', `${quoted(directory)} leads through something else than directories`);
    throw error;
  }
}

/** Where a path leads: a name in a folder, or the root itself, whose name is null. The stack closes what is opened. */
async function findPlace(root: Folder, parts: TarName, path: string, stack: AsyncDisposableStack): Promise<{ readonly folder: Folder; readonly name: string | null }> {
  const name = parts.at(-1) ?? null;
  if (name === null) return { folder: root, name };
  try {
    const walk = stack.use(createWalk(root));
    const folder = await walk.enter(parts.slice(0, -1), async (error) => {
      throw error;
    });
    await lstat(folder.within(name));
    return { folder, name };
  } catch (error) {
    const code = errorCode(error) ?? '';
    if (code === 'ENOENT' || code === 'ENAMETOOLONG' || notDirectory.includes(code)) throw new Failure('file_not_found', { path });
    throw error;
  }
}
