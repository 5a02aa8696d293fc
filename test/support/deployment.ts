import Docker from 'dockerode';
import { readDeploymentFile } from '../../src/composition/config/deployment-file.ts';

/** The ids of a deployment's objects in the engine. */
export interface OnEngine {
  readonly containers: readonly string[];
  readonly networks: readonly string[];
  readonly volumes: readonly string[];
}

const docker = new Docker();
const ours = (deployment: string) => ({ filters: { label: [`skep.deployment=${deployment}`] } });

export async function onEngine(deployment: string): Promise<OnEngine> {
  const containers = await docker.listContainers({ all: true, ...ours(deployment) });
  const networks = await docker.listNetworks(ours(deployment));
  const { Volumes } = await docker.listVolumes(ours(deployment));
  return { containers: containers.map(({ Id }) => Id), networks: networks.map(({ Id }) => Id), volumes: Volumes.map(({ Name }) => Name) };
}

/** Returns the id of the data folder's deployment, as the engine's labels have it. Null if there is none. */
export function deploymentOf(dataDir: string): string | null {
  return readDeploymentFile(dataDir)?.id ?? null;
}

/** Removes all objects of a deployment from the engine. Its server must have ended. */
export async function clearEngine(deployment: string | null): Promise<void> {
  if (deployment === null) return;
  const { containers, networks, volumes } = await onEngine(deployment);
  await Promise.all(containers.map((id) => docker.getContainer(id).remove({ force: true, v: true })));
  await Promise.all([...networks.map((id) => docker.getNetwork(id).remove()), ...volumes.map((name) => docker.getVolume(name).remove())]);
}
