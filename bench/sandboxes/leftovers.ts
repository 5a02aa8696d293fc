import Docker from 'dockerode';
import { readDeploymentFile } from '../../src/composition/deployment-file.ts';

/**
 * Removes what a deployment that is closed has left on the engine: the members of its pools, which a next process would find
 * again, and its network.
 */
export async function removeLeftovers(dataDir: string): Promise<void> {
  const docker = new Docker();
  const filters = { label: [`skep.deployment=${readDeploymentFile(dataDir)?.id ?? 'none'}`] };
  for (const { Id } of await docker.listContainers({ all: true, filters })) await docker.getContainer(Id).remove({ force: true, v: true });
  for (const { Id } of await docker.listNetworks({ filters })) await docker.getNetwork(Id).remove();
}
