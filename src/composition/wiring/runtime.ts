import { join } from 'node:path';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import { ensureDeploymentFile, newDeploymentId } from '../config/deployment-file.ts';
import type { DockerRuntimeOptions, RuntimeOptions, SkepOptions } from '../options.ts';
import { temporaryFolder, unknownChoice } from './custom-adapters.ts';

type DeploymentOptions = Pick<SkepOptions, 'dataDir' | 'store'>;

/** Opens a runtime of Skep's own. The stack closes it. */
export async function openRuntime(
  runtime: RuntimeOptions,
  deployment: DeploymentOptions,
  closers: AsyncDisposableStack,
): Promise<SandboxRuntime> {
  switch (runtime.kind) {
    case 'process': {
      const { createProcessRuntime } = await import('../../adapters/sandbox-runtime/process/index.ts');
      const { dataDir } = deployment;
      const { kind: _, root, ...chosen } = runtime;
      const folder = root ?? (dataDir === undefined ? await temporaryFolder('sandboxes', closers) : join(dataDir, 'sandboxes'));
      return closers.adopt(createProcessRuntime({ ...chosen, root: folder }), (opened) => opened.close());
    }
    case 'docker':
      return await openDockerRuntime(runtime, deployment, closers);
    default:
      throw unknownChoice('runtime', runtime, 'docker or process as its kind, or is a SandboxRuntime of your own');
  }
}

async function openDockerRuntime(
  runtime: DockerRuntimeOptions,
  options: DeploymentOptions,
  closers: AsyncDisposableStack,
): Promise<SandboxRuntime> {
  const { createDockerRuntime } = await import('../../adapters/sandbox-runtime/docker/index.ts');
  const { kind: _, deployment, ...chosen } = runtime;
  const lasting = deployment ?? lastingName(options);
  const name = lasting ?? newDeploymentId();
  const opened = createDockerRuntime({ ...chosen, deployment: name });
  if (lasting === undefined) closers.defer(() => removeNetworks(name, chosen.host));
  closers.defer(() => opened.close());
  if (lasting === undefined) closers.defer(() => removeSandboxes(opened));
  return opened;
}

/** Returns the name that the data folder keeps; undefined if no record outlives the process. */
function lastingName({ dataDir, store }: DeploymentOptions): string | undefined {
  if (dataDir !== undefined) return ensureDeploymentFile(dataDir).id;
  if (store === undefined || ('kind' in store && store.kind === 'memory')) return undefined;
  if ('kind' in store) return ensureDeploymentFile(store.dataDir).id;
  throw new TypeError(
    "createSkep: the docker runtime needs a name that lasts as long as the store's records: "
    + "give it dataDir, or runtime: { kind: 'docker', deployment: 'a-name' }.",
  );
}

/** Removes the sandboxes of a deployment that ends with its process. Nobody could find them again. */
async function removeSandboxes(runtime: SandboxRuntime): Promise<void> {
  const sandboxes = await runtime.list();
  await Promise.allSettled(sandboxes.map(({ id }) => runtime.remove(id)));
}

/** Removes its networks, since an engine has few. */
async function removeNetworks(deployment: string, host: string | undefined): Promise<void> {
  const [{ createClient }, { labels }] = await Promise.all([
    import('../../adapters/sandbox-runtime/docker/engine-client.ts'),
    import('../../adapters/sandbox-runtime/docker/labels.ts'),
  ]);
  const client = createClient(host, process.env);
  const { docker } = client;
  try {
    const networks = await docker.listNetworks({ filters: { label: [`${labels.deployment}=${deployment}`] } });
    await Promise.allSettled(networks.map(({ Id }) => docker.getNetwork(Id).remove()));
  } finally {
    client.close();
  }
}
