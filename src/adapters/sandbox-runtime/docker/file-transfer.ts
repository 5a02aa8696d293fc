import { posix } from 'node:path';
import type Docker from 'dockerode';
import { Failure } from '../../../domain/failure.ts';
import { webStreamOf } from '../../shared/node-streams.ts';
import { partsBelow, quoted, refusedFiles, sandboxPath } from '../sandbox-path.ts';
import { ParentDirectories, uploadArchive } from './archive-upload.ts';
import { ContainerFiles, root } from './container-files.ts';
import { type Engine, findContainer, statusOf } from './engine.ts';
import { withInitContainer } from './init-container.ts';

type Container = Docker.ContainerInspectInfo;
type Archive = ReadableStream<Uint8Array>;

/**
 * Ends file transfers of a sandbox before its state changes. While the engine packs or unpacks files of a container, it answers no other
 * request about it, and a slow client can make that long.
 */
export class Transfers {
  readonly #closed: AbortSignal;
  readonly #ends = new Map<string, AbortController>();

  constructor(closed: AbortSignal) {
    this.#closed = closed;
  }

  /** Returns a signal that fires with the given one, or before the state of the sandbox changes. */
  until(id: string, signal: AbortSignal): AbortSignal {
    const end = this.#ends.get(id) ?? new AbortController();
    this.#ends.set(id, end);
    return AbortSignal.any([signal, end.signal, this.#closed]);
  }

  end(id: string): void {
    this.#ends.get(id)?.abort(new Failure('sandbox_not_running', { id, status: 'changing' }));
    this.#ends.delete(id);
  }
}

/** Unpacks a tar in a sandbox's container, which need not run. */
export async function putFiles(engine: Engine, id: string, directory: string, archive: Archive, signal: AbortSignal): Promise<void> {
  try {
    const path = sandboxPath(directory, 'directory');
    const container = await findContainer(engine, id, signal);
    await unpack(engine, container, id, path, archive, AbortSignal.any([signal, engine.closed]));
  } catch (error) {
    if (!archive.locked) archive.cancel(error).catch(() => {});
    throw statusOf(error) === 404 ? new Failure('sandbox_not_found', { id }, { cause: error }) : error;
  }
}

/** Returns a tar of a path in a sandbox's container, which need not run. */
export async function getFiles(engine: Engine, id: string, path: string, signal: AbortSignal): Promise<Archive> {
  const place = sandboxPath(path, 'path');
  const container = await findContainer(engine, id, signal);
  demandReachable(container, place, 'path');
  try {
    const files = new ContainerFiles(engine, container.Id);
    return webStreamOf(await files.archive(place, AbortSignal.any([signal, engine.closed])));
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
    // Throws if the container is gone. Otherwise only the path is missing.
    await findContainer(engine, id, signal);
    throw new Failure('file_not_found', { path }, { cause: error });
  }
}

async function unpack(
  engine: Engine, container: Container, id: string, directory: string, archive: Archive, signal: AbortSignal,
): Promise<void> {
  const files = new ContainerFiles(engine, container.Id);
  const { existing, missing } = await findPlace(directory, files);
  demandReachable(container, existing, 'directory');
  if (isReadOnly(container, existing)) {
    const hint = `choose a directory below ${quoted(container.Config.WorkingDir)}`;
    throw refusedFiles('directory', `${quoted(directory)} is read-only in this sandbox; ${hint}`);
  }
  const owner = (await files.owner(container.Config.User)) ?? root;
  const place = [...partsOf(existing), ...missing];
  // Unpacks from the root, since the engine refuses a link that leads out of the target directory.
  const upload = (target: string, below: readonly string[]): Promise<void> =>
    uploadArchive({
      engine,
      container: target,
      archive,
      demandEntry: ({ parts }) => demandReachable(container, `/${[...place, ...parts].join('/')}`, 'directory'),
      parents: new ParentDirectories(`/${place.join('/')}`, missing.length > 0, files),
      below,
      missing: missing.length,
      owner,
      signal,
    });
  // If the root is read-only, the engine unpacks nothing. But an init container has the same volumes and a writable root.
  if (container.HostConfig.ReadonlyRootfs !== true) await upload(container.Id, place);
  else await withInitContainer(engine, container, id, (init, targetOf) => upload(init, moved(place, container, targetOf)));
}

function partsOf(path: string): readonly string[] {
  return partsBelow('/', path) ?? [];
}

/** Maps a place in a volume of the container to its place in the init container. */
function moved(place: readonly string[], { HostConfig }: Container, targetOf: (path: string) => string): readonly string[] {
  for (const { Target } of HostConfig.Mounts ?? []) {
    const below = partsBelow(Target, `/${place.join('/')}`);
    if (below !== null) return [...partsOf(targetOf(Target)), ...below];
  }
  return place;
}

/** The target directory of an archive. */
interface Place {
  /** The part of the path that exists. */
  readonly existing: string;
  /** The names of the directories to create below it, from the outermost on. */
  readonly missing: readonly string[];
}

/** Throws `invalid_request` if the path contains something other than a directory. */
async function findPlace(directory: string, files: ContainerFiles): Promise<Place> {
  const missing: string[] = [];
  for (let at = directory; at !== '/'; at = posix.dirname(at)) {
    const found = await files.stat(at);
    if (found === null) {
      missing.unshift(posix.basename(at));
      continue;
    }
    const target = found.type === 'symlink' ? await files.stat(found.linkTarget) : found;
    if (target?.type !== 'directory') throw refusedFiles('directory', `${quoted(at)} is there, and is not a directory`);
    return { existing: found.type === 'symlink' ? found.linkTarget : at, missing };
  }
  return { existing: '/', missing };
}

/** The kernel provides these directories. The engine reads and writes other files than the container's programs see there. */
const kernelDirectories = ['/proc', '/sys', '/dev'];

/** Throws `invalid_request` if the engine can't reach the path as the container's programs see it. */
export function demandReachable({ HostConfig, Mounts }: Container, path: string, member: 'path' | 'directory'): void {
  const inMemory = [
    ...Object.keys(HostConfig.Tmpfs ?? {}),
    ...(HostConfig.Mounts ?? []).flatMap(({ Type, Target }) => (Type === 'tmpfs' ? [Target] : [])),
  ];
  if (![...kernelDirectories, ...inMemory].some((mount) => isBelow(mount, path))) return;
  // A volume below it can be reached.
  if (Mounts.some(({ Destination, Type }) => Type !== 'tmpfs' && isBelow(Destination, path))) return;
  const hint = 'choose another one, below the working directory';
  throw refusedFiles(member, `${quoted(path)} is kept in memory, where the engine reads and writes no files; ${hint}`);
}

export function isReadOnly({ HostConfig, Mounts }: Container, path: string): boolean {
  const [mount] = Mounts.filter(({ Destination }) => isBelow(Destination, path))
    .toSorted((one, other) => other.Destination.length - one.Destination.length);
  return mount === undefined ? HostConfig.ReadonlyRootfs === true : !mount.RW;
}

function isBelow(directory: string, path: string): boolean {
  return partsBelow(directory, path) !== null;
}
