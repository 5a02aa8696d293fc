import { posix } from 'node:path';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { Failure } from '../../../domain/failure.ts';
import { partsBelow, quoted, refusedFiles, sandboxPath } from '../sandbox-path.ts';
import { tarEntries, type TarEntry } from '../tar.ts';
import { createTree, sendInParts } from './archive-upload.ts';
import { lookInside, readArchive, resolveOwner, type Stat, statIn } from './container-files.ts';
import { type Connection, statusOf } from './engine.ts';
import { withHelper } from './init-container.ts';

interface Files {
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

interface Unpacking {
  readonly connection: Connection;
  readonly container: Docker.ContainerInspectInfo;
  readonly id: string;
  readonly directory: string;
  readonly archive: ReadableStream<Uint8Array>;
  readonly signal: AbortSignal;
}

async function unpack({ connection, container, id, directory, archive, signal }: Unpacking): Promise<void> {
  const stat = statIn(connection, container.Id);
  const { existing, missing } = await findPlace(directory, stat);
  demandReachable(container, existing, 'directory');
  if (isReadOnly(container, existing)) {
    throw refusedFiles('directory', `${quoted(directory)} is read-only in this sandbox; choose a directory below ${quoted(container.Config.WorkingDir)}`);
  }
  const inside = lookInside(connection, container.Id);
  const owner = (await resolveOwner(container.Config.User, (path) => inside.read(path))) ?? { uid: 0, gid: 0 };
  const place = [...partsOf(existing), ...missing];
  const demandEntry = ({ parts }: TarEntry): void => demandReachable(container, `/${[...place, ...parts].join('/')}`, 'directory');

  // From the root, since the engine takes a link that leads out of where it unpacks for an attack.
  const send = (target: string, below: readonly string[]): Promise<void> =>
    sendInParts({
      connection,
      container: target,
      entries: (ended) => tarEntries(archive, ended),
      demandEntry,
      tree: createTree(`/${place.join('/')}`, missing.length > 0, stat),
      below,
      missing: missing.length,
      owner,
      signal,
    });
  // The engine unpacks nothing at a root that is read-only; the volumes are those of another container as well.
  if (container.HostConfig.ReadonlyRootfs === true) await withHelper(connection, container, id, (helper, targetOf) => send(helper, moved(place, container, targetOf)));
  else await send(container.Id, place);
}

function partsOf(path: string): readonly string[] {
  return partsBelow('/', path) ?? [];
}

/** Where a place in a volume of the container is in its helper. */
function moved(place: readonly string[], { HostConfig }: Docker.ContainerInspectInfo, targetOf: (path: string) => string): readonly string[] {
  for (const { Target } of HostConfig.Mounts ?? []) {
    const below = partsBelow(Target, `/${place.join('/')}`);
    if (below !== null) return [...partsOf(targetOf(Target)), ...below];
  }
  return place;
}

/** Where an archive is unpacked. */
interface Place {
  /** The part of the directory that is there. */
  readonly existing: string;
  /** The names of the directories below it that have to be made, from the outermost on. */
  readonly missing: readonly string[];
}

/** Throws `invalid_request` where something else than a directory is in the way. */
async function findPlace(directory: string, stat: Stat): Promise<Place> {
  const missing: string[] = [];
  for (let at = directory; ; at = posix.dirname(at)) {
    const found = at === '/' ? { kind: 'directory' as const, linkTarget: '' } : await stat(at);
    if (found === null) {
      missing.unshift(posix.basename(at));
      continue;
    }
    const target = found.kind === 'link' ? await stat(found.linkTarget) : found;
    if (target?.kind !== 'directory') throw refusedFiles('directory', `${quoted(at)} is there, and is not a directory`);
    return { existing: found.kind === 'link' ? found.linkTarget : at, missing };
  }
}

/** What the kernel makes up, and a container's programs see in place of what the engine reads and writes. */
const madeUp = ['/proc', '/sys', '/dev'];

/** Throws `invalid_request` where the engine can't reach what the container's programs see at the path. */
function demandReachable({ HostConfig, Mounts }: Docker.ContainerInspectInfo, path: string, member: 'path' | 'directory'): void {
  const inMemory = [
    ...Object.keys(HostConfig.Tmpfs ?? {}),
    ...(HostConfig.Mounts ?? []).flatMap(({ Type, Target }) => (Type === 'tmpfs' ? [Target] : [])),
  ];
  if (![...madeUp, ...inMemory].some((mount) => isBelow(mount, path))) return;
  // A volume below it is reached again.
  if (Mounts.some(({ Destination, Type }) => Type !== 'tmpfs' && isBelow(Destination, path))) return;
  throw refusedFiles(member, `${quoted(path)} is kept in memory, where the engine reads and writes no files; choose another one, below the working directory`);
}

/** May nothing be written at the path? */
function isReadOnly({ HostConfig, Mounts }: Docker.ContainerInspectInfo, path: string): boolean {
  const [mount] = Mounts.filter(({ Destination }) => isBelow(Destination, path)).toSorted((one, other) => other.Destination.length - one.Destination.length);
  return mount === undefined ? HostConfig.ReadonlyRootfs === true : !mount.RW;
}

function isBelow(directory: string, path: string): boolean {
  return partsBelow(directory, path) !== null;
}
