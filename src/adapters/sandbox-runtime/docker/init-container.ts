import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type Docker from 'dockerode';
import { type Header, pack } from 'tar-stream';
import { type Inside, lookInside, type Owner, resolveOwner } from './container-files.ts';
import { removeContainer } from './containers.ts';
import type { Connection } from './engine.ts';
import { containerName, labels } from './labels.ts';

/** A directory as it has to be before the programs run. */
interface Directory {
  readonly path: string;
  readonly owner: Owner;
  readonly mode: number;
}

interface Needs {
  readonly directories: readonly Directory[];
  /** False where the program is not in the image. */
  readonly runnable: boolean;
}

const maxKnown = 256;

/** Makes new containers ready for their programs. */
export interface Preparation {
  /** Before the first start. Can be done again. Answers with whether the image has the program that is to be run. */
  prepare(container: Docker.ContainerInspectInfo, id: string): Promise<boolean>;
}

/** What the containers of an image need is looked up once: they all begin alike. */
export function createPreparation(connection: Connection): Preparation {
  const known = new Map<string, Needs>();

  async function needsOf(container: Docker.ContainerInspectInfo): Promise<Needs> {
    const { Image, Config, Path, HostConfig } = container;
    const key = JSON.stringify([Image, Config.User, Config.WorkingDir, HostConfig.ReadonlyRootfs, Path, Config.Env.find((entry) => entry.startsWith('PATH='))]);
    const earlier = known.get(key);
    if (earlier !== undefined) return earlier;
    const needs = await findNeeds(container, lookInside(connection, container.Id));
    known.set(key, needs);
    const [oldest] = known.keys();
    if (known.size > maxKnown && oldest !== undefined) known.delete(oldest);
    return needs;
  }

  return {
    async prepare(container, id) {
      const { directories, runnable } = await needsOf(container);
      if (directories.length === 0) return runnable;
      if (container.HostConfig.ReadonlyRootfs === true) await withHelper(connection, container, id, (helper, targetOf) => put(connection, helper, directories.map((one) => ({ ...one, path: targetOf(one.path) }))));
      else await put(connection, container.Id, directories);
      return runnable;
    },
  };
}

async function findNeeds(container: Docker.ContainerInspectInfo, inside: Inside): Promise<Needs> {
  const owner = await resolveOwner(container.Config.User, inside.read);
  const directories: Directory[] = [];
  const workingDir = container.Config.WorkingDir;
  if (owner !== null && workingDir !== '' && workingDir !== '/') {
    const found = await inside.look(workingDir);
    if (!isWritable(found, owner)) directories.push({ path: workingDir, owner, mode: ((found?.mode ?? 0o755) & 0o7777) | 0o700 });
  }
  if (owner !== null && container.HostConfig.ReadonlyRootfs === true && workingDir !== '/tmp') {
    if (!isWritable(await inside.look('/tmp'), owner)) directories.push({ path: '/tmp', owner: { uid: 0, gid: 0 }, mode: 0o1777 });
  }
  return { directories, runnable: await canRun(container, inside) };
}

/** Without capabilities, root too needs the permission. */
function isWritable(header: Header | null, { uid, gid }: Owner): boolean {
  if (header?.type !== 'directory') return false;
  const mode = header.mode ?? 0;
  const shift = header.uid === uid ? 6 : header.gid === gid ? 3 : 0;
  return ((mode >> shift) & 0o3) === 0o3;
}

async function put({ docker, call }: Connection, containerId: string, directories: readonly Directory[]): Promise<void> {
  const archive = pack();
  for (const { path, owner, mode } of directories) archive.entry({ name: `${path.replace(/^\/+/, '')}/`, type: 'directory', mode, ...owner });
  archive.finalize();
  const bytes = await buffer(archive);
  await call((abortSignal) => docker.getContainer(containerId).putArchive(bytes, { path: '/', abortSignal }));
}

const enginePath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Is the program there that a container is to run, and is it one? The container's own first process would only exit with 127. */
async function canRun({ Path: program, Config }: Docker.ContainerInspectInfo, inside: Inside): Promise<boolean> {
  const workingDir = Config.WorkingDir === '' ? '/' : Config.WorkingDir;
  const path = Config.Env.find((entry) => entry.startsWith('PATH='))?.slice('PATH='.length) ?? enginePath;
  const candidates = program.includes('/')
    ? [posix.resolve(workingDir, program)]
    : path.split(':').map((folder) => posix.resolve(workingDir, folder, program));
  for (const candidate of candidates) {
    const mode = await inside.permissions(candidate);
    if (mode !== null && (mode & 0o111) !== 0) return true;
  }
  return false;
}

/**
 * Lends a container that never runs and has the volumes of another one. Into one whose root is read-only nothing can be
 * unpacked above its volumes, and so the volumes' own directories can't be given away. `targetOf` tells where a volume is.
 */
export async function withHelper(
  connection: Connection,
  container: Docker.ContainerInspectInfo,
  id: string,
  use: (helperId: string, targetOf: (path: string) => string) => Promise<void>,
): Promise<void> {
  const { docker, deployment, call } = connection;
  const targets = new Map((container.HostConfig.Mounts ?? []).map(({ Target }, index) => [Target, `/skep-${index}`]));
  const targetOf = (path: string): string => targets.get(path) ?? path;
  const Mounts = (container.HostConfig.Mounts ?? []).map((mount) => ({
    Type: mount.Type,
    Source: mount.Source,
    Target: targetOf(mount.Target),
    VolumeOptions: { NoCopy: true, Labels: {}, DriverConfig: { Name: 'local', Options: {} } },
  }));
  const created = await call((abortSignal) =>
    docker.createContainer({
      name: `${containerName(deployment, id)}_init-${randomUUID()}`,
      Image: container.Image,
      Entrypoint: ['never-run'],
      Labels: { [labels.deployment]: deployment, [labels.partOf]: id },
      HostConfig: { NetworkMode: 'none', Mounts },
      abortSignal,
    }),
  );
  try {
    await use(created.id, targetOf);
  } finally {
    await removeContainer(connection, created.id);
  }
}

/** Removes those that a crash left behind. */
export async function removeHelpers(connection: Connection, id: string): Promise<void> {
  const { docker, deployment, call } = connection;
  const label = [`${labels.deployment}=${deployment}`, `${labels.partOf}=${id}`];
  const found = await call((abortSignal) => docker.listContainers({ all: true, filters: { label }, abortSignal }));
  for (const { Id } of found) await removeContainer(connection, Id);
}
