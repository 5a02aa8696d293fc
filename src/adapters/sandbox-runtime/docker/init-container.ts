import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import type Docker from 'dockerode';
import { LRUCache } from 'lru-cache';
import type { FileEntry } from '../../../domain/file-entry.ts';
import { partsBelow } from '../sandbox-path.ts';
import { ContainerFiles, type Owner } from './container-files.ts';
import { type Engine, removeContainer } from './engine.ts';
import { containerName, labels } from './labels.ts';
import { tarOfOne } from './single-entry-tar.ts';

/** The required state of a directory before the programs run. */
type Directory = Owner & { readonly path: string; readonly mode: number };

/**
 * Returns a function that prepares a container before its first start, and returns whether the image has the container's program. It is
 * idempotent. The needs are looked up once per image, since its containers are all the same at first.
 */
export function createPreparation(engine: Engine): (container: Docker.ContainerInspectInfo, id: string) => Promise<boolean> {
  const known = new LRUCache<string, Awaited<ReturnType<typeof findNeeds>>>({ max: 256 });
  return async (container, id) => {
    const { Image, Config, Path, HostConfig } = container;
    const path = Config.Env.find((entry) => entry.startsWith('PATH='));
    const key = JSON.stringify([Image, Config.User, Config.WorkingDir, HostConfig.ReadonlyRootfs, Path, path]);
    const files = new ContainerFiles(engine, container.Id);
    const { directories, hasProgram } = known.get(key) ?? (await findNeeds(container, files));
    known.set(key, { directories, hasProgram });
    if (directories.length === 0) return hasProgram;
    if (HostConfig.ReadonlyRootfs !== true) await makeDirectories(directories, files, (place) => place);
    else await withInitContainer(engine, container, id, (init, placeOf) => makeDirectories(directories, init, placeOf));
    return hasProgram;
  };
}

async function makeDirectories(directories: readonly Directory[], files: ContainerFiles, placeOf: (path: string) => string): Promise<void> {
  for (const { path, ...header } of directories) {
    await files.unpack({ path: '/' }, tarOfOne({ ...header, name: `${placeOf(path).replace(/^\/+/, '')}/`, type: 'directory' }));
  }
}

/** Returns the directories to create, and whether the program is in the image. */
async function findNeeds(container: Docker.ContainerInspectInfo, files: ContainerFiles) {
  const owner = await files.owner(container.Config.User);
  const directories: Directory[] = [];
  const workingDir = container.Config.WorkingDir;
  if (owner !== null && workingDir !== '' && workingDir !== '/') {
    const found = await files.entry(workingDir);
    // Git refuses a work tree of another user. A folder with the sticky bit, such as /tmp, is for all users.
    const isShared = ((found?.mode ?? 0) & 0o1000) !== 0;
    const isUsable = isWritable(found, owner) && (isShared || found?.owner?.uid === owner.uid);
    if (!isUsable) directories.push({ path: workingDir, ...owner, mode: ((found?.mode ?? 0o755) & 0o7777) | 0o700 });
  }
  if (owner !== null && container.HostConfig.ReadonlyRootfs === true && workingDir !== '/tmp') {
    if (!isWritable(await files.entry('/tmp'), owner)) directories.push({ path: '/tmp', uid: 0, gid: 0, mode: 0o1777 });
  }
  return { directories, hasProgram: await isProgramExecutable(container, files) };
}

/** Without capabilities, even root needs the permission. */
function isWritable(found: FileEntry | null, { uid, gid }: Owner): boolean {
  if (found?.type !== 'directory') return false;
  const shift = found.owner?.uid === uid ? 6 : found.owner?.gid === gid ? 3 : 0;
  return ((found.mode >> shift) & 0o3) === 0o3;
}

const enginePath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Returns whether the container's program exists and is executable. If not, the container's init would only exit with 127. */
async function isProgramExecutable({ Path: program, Config }: Docker.ContainerInspectInfo, files: ContainerFiles): Promise<boolean> {
  const workingDir = Config.WorkingDir === '' ? '/' : Config.WorkingDir;
  const path = Config.Env.find((entry) => entry.startsWith('PATH='))?.slice('PATH='.length) ?? enginePath;
  const folders = program.includes('/') ? ['.'] : path.split(':');
  for (const folder of folders) {
    const found = await files.statTarget(posix.resolve(workingDir, folder, program));
    if (found?.type === 'file' && (found.mode & 0o111) !== 0) return true;
  }
  return false;
}

/**
 * Calls `use` with the files of a container that never runs and has the volumes of the given one. In a container whose root is read-only,
 * the engine unpacks nothing above the volumes, so it can't set the owner of a volume's top directory. `placeOf` returns where a path of a
 * volume is in the new container.
 */
export async function withInitContainer(
  engine: Engine,
  container: Docker.ContainerInspectInfo,
  id: string,
  use: (files: ContainerFiles, placeOf: (path: string) => string) => Promise<void>,
): Promise<void> {
  const { docker, deployment, call } = engine;
  // Also those of the image, which `HostConfig` does not list. The innermost volume that has a path comes first.
  const volumes = container.Mounts.filter(({ Type }) => Type === 'volume')
    .toSorted((one, other) => other.Destination.length - one.Destination.length);
  const Mounts = volumes.map(({ Name = '' }, index) => ({
    Type: 'volume' as const,
    Source: Name,
    Target: `/skep-${index}`,
    VolumeOptions: { NoCopy: true, Labels: {}, DriverConfig: { Name: 'local', Options: {} } },
  }));
  const placeOf = (path: string): string => {
    const index = volumes.findIndex(({ Destination }) => partsBelow(Destination, path) !== null);
    return index < 0 ? path : posix.join(`/skep-${index}`, posix.relative(volumes[index]?.Destination ?? '', path));
  };
  const config: Docker.ContainerCreateOptions = {
    name: `${containerName(deployment, id)}_init-${randomUUID()}`,
    Image: container.Image,
    Entrypoint: ['never-run'],
    Labels: { [labels.deployment]: deployment, [labels.partOf]: id },
    HostConfig: { NetworkMode: 'none', Mounts },
  };
  const created = await call((abortSignal) => docker.createContainer({ ...config, abortSignal }));
  try {
    await use(new ContainerFiles(engine, created.id), placeOf);
  } finally {
    await removeContainer(engine, created.id);
  }
}
