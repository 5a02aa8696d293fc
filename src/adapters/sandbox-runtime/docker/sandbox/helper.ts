import { randomUUID } from 'node:crypto';
import type Docker from 'dockerode';
import type { Connection } from '../connect.ts';
import { containerName, labels } from '../identity.ts';
import { removeContainer } from './remove.ts';

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
