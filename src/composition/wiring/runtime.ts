import { join } from 'node:path';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import { ensureDeploymentFile, newDeploymentId } from '../config/deployment-file.ts';
import type { CheckedOptions, DockerRuntimeOptions, ProcessRuntimeOptions } from '../options.ts';
import { defined } from '../config/field-schemas.ts';
import { temporaryFolder } from './custom-adapters.ts';

type DeploymentOptions = Pick<CheckedOptions, 'dataDir' | 'store'>;

// The stack closes a runtime, and removes its sandboxes if nobody could find them again.

export async function openProcessRuntime(
  options: ProcessRuntimeOptions, { dataDir }: DeploymentOptions, closers: AsyncDisposableStack,
): Promise<SandboxRuntime> {
  const { createProcessRuntime } = await import('../../adapters/sandbox-runtime/process/index.ts');
  const lasting = options.root ?? (dataDir === undefined ? undefined : join(dataDir, 'sandboxes'));
  const root = lasting ?? (await temporaryFolder('sandboxes', closers));
  const opened = closers.adopt(createProcessRuntime({ ...defined(options), root }), (runtime) => runtime.close());
  if (lasting === undefined) closers.defer(() => removeSandboxes(opened));
  return opened;
}

export async function openDockerRuntime(
  options: DockerRuntimeOptions, lifetime: DeploymentOptions, closers: AsyncDisposableStack,
): Promise<SandboxRuntime> {
  const { createDockerRuntime } = await import('../../adapters/sandbox-runtime/docker/index.ts');
  const lasting = options.deployment ?? lastingName(lifetime);
  const deployment = lasting ?? newDeploymentId();
  // Closing it removes its networks if no container is left.
  const opened = closers.adopt(createDockerRuntime({ ...defined(options), deployment }), (runtime) => runtime.close());
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
async function removeSandboxes(runtime: SandboxRuntime & { settled(): Promise<void> }): Promise<void> {
  // A start whose caller has left makes a sandbox all the same.
  await runtime.settled();
  const sandboxes = await runtime.list();
  await Promise.allSettled(sandboxes.map(({ id }) => runtime.remove(id)));
}
