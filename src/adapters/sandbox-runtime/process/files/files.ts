import { mkdir } from 'node:fs/promises';
import { posix } from 'node:path';
import { pack } from 'tar-stream';
import { Failure } from '../../../../domain/failure.ts';
import { sandboxPath } from '../../sandbox-path.ts';
import { tarEntries } from '../../tar-entries.ts';
import { tarOf } from '../../tar-writing.ts';
import { unavailable, withFailures } from '../file-errors.ts';
import type { Layout } from '../layout.ts';
import type { Reader } from '../reader.ts';
import { openFolder, type Folder } from './folder.ts';
import { addOpened, addTree } from './pack.ts';
import { workspaceParts, type Workspace } from './place.ts';
import { createTasks } from './tasks.ts';
import { enterPlace, findPlace } from './ways.ts';
import { unpackBelow } from './unpack.ts';

export interface Files {
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
