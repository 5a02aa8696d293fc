import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SandboxRuntime } from '../../../ports/sandbox-runtime.ts';
import { ensureDeploymentFile, newDeploymentId } from '../../config/deployment-file.ts';
import type { DockerRuntimeOptions, ProcessRuntimeOptions, RuntimeOptions, SkepOptions } from '../../options.ts';
import { unknownChoice } from './unknown-choice.ts';

/** Opens the sandbox runtime that the options choose; a ready-made one is its maker's to close. */
export async function openRuntime(options: SkepOptions, closers: AsyncDisposableStack): Promise<SandboxRuntime> {
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

async function openProcessRuntime({ root }: ProcessRuntimeOptions, { dataDir }: SkepOptions, closers: AsyncDisposableStack): Promise<SandboxRuntime> {
  const { createProcessRuntime } = await import('../../../adapters/sandbox-runtime/process/index.ts');
  const opened = createProcessRuntime({ root: root ?? (dataDir === undefined ? await temporaryRoot(closers) : join(dataDir, 'sandboxes')) });
  closers.defer(() => opened.close());
  return opened;
}

/** Where there is no data folder, workspaces don't outlive the deployment. */
async function temporaryRoot(closers: AsyncDisposableStack): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'skep-sandboxes-'));
  closers.defer(() => rm(root, { recursive: true, force: true }));
  return root;
}

async function openDockerRuntime(runtime: DockerRuntimeOptions, options: SkepOptions, closers: AsyncDisposableStack): Promise<SandboxRuntime> {
  const { createDockerRuntime } = await import('../../../adapters/sandbox-runtime/docker/index.ts');
  const { kind: _, deployment = lastingName(options), ...chosen } = runtime;
  if (deployment !== undefined) {
    const opened = createDockerRuntime({ ...chosen, deployment });
    closers.defer(() => opened.close());
    return opened;
  }
  const { removeNetworks, removeSandboxes } = await import('./passing-deployment.ts');
  const name = newDeploymentId();
  const opened = createDockerRuntime({ ...chosen, deployment: name });
  closers.defer(() => removeNetworks(name, runtime.host));
  closers.defer(() => opened.close());
  closers.defer(() => removeSandboxes(opened));
  return opened;
}

/** The name that is kept in the data folder; undefined where nothing outlives the process anyway. */
function lastingName({ dataDir, store }: SkepOptions): string | undefined {
  if (dataDir !== undefined) return ensureDeploymentFile(dataDir).id;
  if (store === undefined || ('kind' in store && store.kind === 'memory')) return undefined;
  if ('kind' in store) return ensureDeploymentFile(store.dataDir).id;
  throw new TypeError("createSkep: the docker runtime needs a name that lasts as long as the store's records: give it dataDir, or runtime: { kind: 'docker', deployment: 'a-name' }.");
}
