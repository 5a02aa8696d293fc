import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import type Docker from 'dockerode';
import type { FileEntry } from '../../../domain/file-entry.ts';
import { createLruMap } from '../../shared/lru-map.ts';
import { ContainerFiles, type Owner } from './container-files.ts';
import { type Engine, removeContainer } from './engine.ts';
import { containerName, labels } from './labels.ts';

/** The required state of a directory before the programs run. */
type Directory = Owner & { readonly path: string; readonly mode: number };

interface Needs {
  readonly directories: readonly Directory[];
  /** False if the program is not in the image. */
  readonly isRunnable: boolean;
}

/** Prepares new containers for their programs. The needs are looked up once per image, since its containers are all the same at first. */
export class Preparation {
  readonly #engine: Engine;
  readonly #known = createLruMap<Needs>(256, 256, () => 1);

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Prepares a container before its first start. Idempotent. Returns whether the image has the container's program. */
  async prepare(container: Docker.ContainerInspectInfo, id: string): Promise<boolean> {
    const { directories, isRunnable } = await this.#needsOf(container);
    if (directories.length === 0) return isRunnable;
    if (container.HostConfig.ReadonlyRootfs === true) {
      await withInitContainer(this.#engine, container, id, (init, targetOf) =>
        new ContainerFiles(this.#engine, init).put('/', directories.map((one) => entryOf(one, targetOf(one.path)))),
      );
    } else await new ContainerFiles(this.#engine, container.Id).put('/', directories.map((one) => entryOf(one, one.path)));
    return isRunnable;
  }

  async #needsOf(container: Docker.ContainerInspectInfo): Promise<Needs> {
    const { Image, Config, Path, HostConfig } = container;
    const path = Config.Env.find((entry) => entry.startsWith('PATH='));
    const key = JSON.stringify([Image, Config.User, Config.WorkingDir, HostConfig.ReadonlyRootfs, Path, path]);
    const earlier = this.#known.get(key);
    if (earlier !== null) return earlier;
    const needs = await findNeeds(container, new ContainerFiles(this.#engine, container.Id));
    this.#known.set(key, needs);
    return needs;
  }
}

function entryOf({ uid, gid, mode }: Directory, path: string) {
  return { name: `${path.replace(/^\/+/, '')}/`, type: 'directory' as const, uid, gid, mode };
}

async function findNeeds(container: Docker.ContainerInspectInfo, files: ContainerFiles): Promise<Needs> {
  const owner = await files.owner(container.Config.User);
  const directories: Directory[] = [];
  const workingDir = container.Config.WorkingDir;
  if (owner !== null && workingDir !== '' && workingDir !== '/') {
    const found = await files.entry(workingDir);
    if (!isWritable(found, owner)) directories.push({ path: workingDir, ...owner, mode: ((found?.mode ?? 0o755) & 0o7777) | 0o700 });
  }
  if (owner !== null && container.HostConfig.ReadonlyRootfs === true && workingDir !== '/tmp') {
    if (!isWritable(await files.entry('/tmp'), owner)) directories.push({ path: '/tmp', uid: 0, gid: 0, mode: 0o1777 });
  }
  return { directories, isRunnable: await canRun(container, files) };
}

/** Without capabilities, even root needs the permission. */
function isWritable(found: FileEntry | null, { uid, gid }: Owner): boolean {
  if (found?.type !== 'directory') return false;
  const shift = found.owner?.uid === uid ? 6 : found.owner?.gid === gid ? 3 : 0;
  return ((found.mode >> shift) & 0o3) === 0o3;
}

const enginePath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Returns whether the container's program exists and is executable. If not, the container's init would only exit with 127. */
async function canRun({ Path: program, Config }: Docker.ContainerInspectInfo, files: ContainerFiles): Promise<boolean> {
  const workingDir = Config.WorkingDir === '' ? '/' : Config.WorkingDir;
  const path = Config.Env.find((entry) => entry.startsWith('PATH='))?.slice('PATH='.length) ?? enginePath;
  const folders = program.includes('/') ? ['.'] : path.split(':');
  for (const folder of folders) {
    const mode = await files.permissions(posix.resolve(workingDir, folder, program));
    if (mode !== null && (mode & 0o111) !== 0) return true;
  }
  return false;
}

/**
 * Calls `use` with a container that never runs and has the volumes of the given one. In a container whose root is read-only, the engine
 * unpacks nothing above the volumes, so it can't set the owner of a volume's top directory. `targetOf` returns where a volume is mounted.
 */
export async function withInitContainer(
  engine: Engine,
  container: Docker.ContainerInspectInfo,
  id: string,
  use: (initId: string, targetOf: (path: string) => string) => Promise<void>,
): Promise<void> {
  const { docker, deployment, call } = engine;
  const targets = new Map((container.HostConfig.Mounts ?? []).map(({ Target }, index) => [Target, `/skep-${index}`]));
  const targetOf = (path: string): string => targets.get(path) ?? path;
  const Mounts = (container.HostConfig.Mounts ?? []).map(({ Type, Source, Target }) => ({
    Type,
    Source,
    Target: targetOf(Target),
    VolumeOptions: { NoCopy: true, Labels: {}, DriverConfig: { Name: 'local', Options: {} } },
  }));
  const config: Docker.ContainerCreateOptions = {
    name: `${containerName(deployment, id)}_init-${randomUUID()}`,
    Image: container.Image,
    Entrypoint: ['never-run'],
    Labels: { [labels.deployment]: deployment, [labels.partOf]: id },
    HostConfig: { NetworkMode: 'none', Mounts },
  };
  const created = await call((abortSignal) => docker.createContainer({ ...config, abortSignal }));
  try {
    await use(created.id, targetOf);
  } finally {
    await removeContainer(engine, created.id);
  }
}

/** Removes the init containers that a crash left behind. */
export async function removeInitContainers(engine: Engine, id: string): Promise<void> {
  const { docker, deployment, call } = engine;
  const label = [`${labels.deployment}=${deployment}`, `${labels.partOf}=${id}`];
  const found = await call((abortSignal) => docker.listContainers({ all: true, filters: { label }, abortSignal }));
  for (const { Id } of found) await removeContainer(engine, Id);
}
