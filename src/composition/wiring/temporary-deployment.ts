import { createClient } from '../../adapters/sandbox-runtime/docker/engine-client.ts';
import { labels } from '../../adapters/sandbox-runtime/docker/labels.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';

/** Removes the sandboxes of a deployment that ends with its process. Nobody could find them again. */
export async function removeSandboxes(runtime: SandboxRuntime): Promise<void> {
  const sandboxes = await runtime.list();
  await Promise.allSettled(sandboxes.map(({ id }) => runtime.remove(id)));
}

/** Removes its networks, since an engine has few. */
export async function removeNetworks(deployment: string, host: string | undefined): Promise<void> {
  const client = createClient(host, process.env);
  const { docker } = client;
  try {
    const networks = await docker.listNetworks({ filters: { label: [`${labels.deployment}=${deployment}`] } });
    await Promise.allSettled(networks.map(({ Id }) => docker.getNetwork(Id).remove()));
  } finally {
    client.close();
  }
}
