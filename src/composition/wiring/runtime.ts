import { join } from 'node:path';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import { ensureDeploymentFile, newDeploymentId } from '../config/deployment-file.ts';
import type { DockerRuntimeOptions, ProcessRuntimeOptions, RuntimeOptions, SkepOptions } from '../options.ts';
import { temporaryFolder, unknownChoice } from './own-adapters.ts';

/** The options, with the runtime that a factory made. */
type OpenRuntime = Pick<SkepOptions, 'dataDir' | 'store'> & { readonly runtime?: RuntimeOptions | SandboxRuntime | undefined };

/** Opens the sandbox runtime that the options choose. A ready-made one is closed by whoever made it. */
export async function openRuntime(options: OpenRuntime, closers: AsyncDisposableStack): Promise<SandboxRuntime> {
  const { runtime = { kind: 'process' } } = options;
  if (isReady(runtime)) return runtime;
  switch (runtime.kind) {
    case 'process':
      return await openProcessRuntime(runtime, options, closers);
    case 'docker':
      return await openDockerRuntime(runtime, options, closers);
    default:
      throw unknownChoice('runtime', runtime, 'docker or process as its kind, or is a SandboxRuntime of your own');
  }
}

function isReady(runtime: RuntimeOptions | SandboxRuntime): runtime is SandboxRuntime {
  return typeof runtime === 'object' && 'inspect' in runtime;
}

/** Without a data folder, workspaces are in a temporary folder, which is removed with the deployment. */
async function openProcessRuntime(
  { root }: ProcessRuntimeOptions,
  { dataDir }: OpenRuntime,
  closers: AsyncDisposableStack,
): Promise<SandboxRuntime> {
  const { createProcessRuntime } = await import('../../adapters/sandbox-runtime/process/index.ts');
  const folder = root ?? (dataDir === undefined ? await temporaryFolder('sandboxes', closers) : join(dataDir, 'sandboxes'));
  const opened = createProcessRuntime({ root: folder });
  closers.defer(() => opened.close());
  return opened;
}

async function openDockerRuntime(
  runtime: DockerRuntimeOptions,
  options: OpenRuntime,
  closers: AsyncDisposableStack,
): Promise<SandboxRuntime> {
  const { createDockerRuntime } = await import('../../adapters/sandbox-runtime/docker/index.ts');
  const { kind: _, deployment = lastingName(options), ...chosen } = runtime;
  if (deployment !== undefined) {
    const opened = createDockerRuntime({ ...chosen, deployment });
    closers.defer(() => opened.close());
    return opened;
  }
  const { removeNetworks, removeSandboxes } = await import('./temporary-deployment.ts');
  const name = newDeploymentId();
  const opened = createDockerRuntime({ ...chosen, deployment: name });
  closers.defer(() => removeNetworks(name, runtime.host));
  closers.defer(() => opened.close());
  closers.defer(() => removeSandboxes(opened));
  return opened;
}

/** Returns the name that the data folder keeps; undefined if no record outlives the process. */
function lastingName({ dataDir, store }: OpenRuntime): string | undefined {
  if (dataDir !== undefined) return ensureDeploymentFile(dataDir).id;
  if (store === undefined || ('kind' in store && store.kind === 'memory')) return undefined;
  if ('kind' in store) return ensureDeploymentFile(store.dataDir).id;
  throw new TypeError(
    "createSkep: the docker runtime needs a name that lasts as long as the store's records: "
    + "give it dataDir, or runtime: { kind: 'docker', deployment: 'a-name' }.",
  );
}
