import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { Failure } from '../../../../domain/failure.ts';
import { sandboxPath } from '../../sandbox-path.ts';
import type { Connection } from '../connect.ts';
import { statusOf } from '../engine-errors.ts';
import { demandReachable } from './place.ts';
import { readArchive } from './read-archive.ts';
import { unpack } from './unpack.ts';

export interface Files {
  putFiles(id: string, directory: string, archive: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void>;
  getFiles(id: string, path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** Moves files into and out of the containers of sandboxes, whether they run or not, through the engine. What goes on ends with the connection. */
export function createFiles(connection: Connection): Files {
  const find = async (id: string, signal: AbortSignal): Promise<Docker.ContainerInspectInfo> => {
    signal.throwIfAborted();
    const found = await connection.find(id, signal);
    if (found === null || found === 'foreign') throw new Failure('sandbox_not_found', { id });
    return found;
  };
  return {
    async putFiles(id, directory, archive, signal) {
      try {
        const path = sandboxPath(directory, 'directory');
        const container = await find(id, signal);
        await unpack({ connection, container, id, directory: path, archive, signal: AbortSignal.any([signal, connection.closed]) });
      } catch (error) {
        if (!archive.locked) archive.cancel(error).catch(() => {});
        throw statusOf(error) === 404 ? new Failure('sandbox_not_found', { id }, { cause: error }) : error;
      }
    },
    async getFiles(id, path, signal) {
      const place = sandboxPath(path, 'path');
      const container = await find(id, signal);
      demandReachable(container, place, 'path');
      try {
        return Readable.toWeb(await readArchive(connection, container.Id, place, AbortSignal.any([signal, connection.closed])));
      } catch (error) {
        if (statusOf(error) !== 404) throw error;
        // The container, or only the path in it.
        await find(id, signal);
        throw new Failure('file_not_found', { path }, { cause: error });
      }
    },
  };
}
