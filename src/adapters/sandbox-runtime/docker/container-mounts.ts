import type Docker from 'dockerode';
import type { SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { partsBelow, quotedName, refusedFiles } from '../sandbox-path.ts';
import { type Engine, removeContainer, unlessMissing } from './engine.ts';
import { containerName, labels } from './labels.ts';

type Container = Docker.ContainerInspectInfo;

/**
 * Returns volumes for the writable directories of a sandbox whose root is read-only. A tmpfs is no alternative: when the sandbox stops, it
 * loses its files, and also the files that the engine unpacked into it.
 */
export function volumeMounts(deployment: string, { id, spec }: SandboxLaunch): Docker.MountSettings[] {
  if (!spec.isolation.readOnlyRoot) return [];
  const owned = { [labels.deployment]: deployment, [labels.partOf]: id };
  const { diskBytes } = spec.resources;
  // Each volume gets the whole limit, since a program may need all of it in either one.
  const volumeOptions: Record<string, string> = diskBytes === null ? {} : { size: String(diskBytes) };
  const targets = { work: spec.workingDir, ...(spec.workingDir !== '/tmp' && { tmp: '/tmp' }) };
  return Object.entries(targets).map(([purpose, Target]) => ({
    Type: 'volume',
    Source: `${containerName(deployment, id)}_${purpose}`,
    Target,
    VolumeOptions: { NoCopy: false, Labels: owned, DriverConfig: { Name: 'local', Options: volumeOptions } },
  }));
}

/** Removes the other objects of a sandbox whose container is gone: init containers that a crash left behind, and volumes. */
export async function removeParts(engine: Engine, id: string): Promise<void> {
  const { call, docker, deployment } = engine;
  const filters = { label: [`${labels.deployment}=${deployment}`, `${labels.partOf}=${id}`] };
  const containers = await call((abortSignal) => docker.listContainers({ all: true, filters, abortSignal }));
  for (const { Id } of containers) await removeContainer(engine, Id);
  const { Volumes } = await call((abortSignal) => docker.listVolumes({ filters, abortSignal }));
  for (const { Name } of Volumes) await unlessMissing(call((abortSignal) => docker.getVolume(Name).remove({ abortSignal })));
}

/** The kernel provides these directories. The engine reads and writes other files than the container's programs see there. */
const kernelDirectories = ['/proc', '/sys', '/dev'];

/** Throws `invalid_request` if the engine can't reach the path as the container's programs see it. */
export function requireReachable({ Mounts }: Container, path: string, member: 'path' | 'directory'): void {
  if (!kernelDirectories.some((directory) => isBelow(directory, path))) return;
  // A volume below such a directory can be reached.
  if (Mounts.some(({ Destination }) => isBelow(Destination, path))) return;
  const hint = 'choose another one, below the working directory';
  throw refusedFiles(member, `${quotedName(path)} is kept in memory, where the engine reads and writes no files; ${hint}`);
}

export function isReadOnly({ HostConfig, Mounts }: Container, path: string): boolean {
  const [mount] = Mounts.filter(({ Destination }) => isBelow(Destination, path))
    .toSorted((one, other) => other.Destination.length - one.Destination.length);
  return mount === undefined ? HostConfig.ReadonlyRootfs === true : !mount.RW;
}

function isBelow(directory: string, path: string): boolean {
  return partsBelow(directory, path) !== null;
}
