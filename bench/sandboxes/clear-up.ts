import Docker from 'dockerode';
import { labels } from '../../src/adapters/sandbox-runtime/docker/labels.ts';

/**
 * Removes what a deployment that is closed has left on the engine: the members of its pools, which a next process would find
 * again, and its networks.
 */
export async function clearUp(deployment: string): Promise<void> {
  const docker = new Docker();
  const filters = { label: [`${labels.deployment}=${deployment}`] };
  for (const { Id } of await docker.listContainers({ all: true, filters })) await docker.getContainer(Id).remove({ force: true, v: true });
  for (const { Id } of await docker.listNetworks({ filters })) await docker.getNetwork(Id).remove();
}
