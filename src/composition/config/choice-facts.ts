import { isFailure } from '../../domain/failure.ts';
import type { SkepConfig } from './config.ts';
import { newDeploymentId, readDeploymentFile } from './deployment-file.ts';
import { dockerOptions, type ChoiceFacts } from './runtime-choice.ts';

/** What the data folder and the machine say about the choice of a runtime. */
export function choiceFacts(config: SkepConfig, { hasSandboxes }: { readonly hasSandboxes: boolean }): ChoiceFacts {
  return {
    // A folder from before runtimes were noted has processes.
    inUse: hasSandboxes ? (readDeploymentFile(config.dataDir)?.runtime ?? 'process') : null,
    dockerAnswers: () => dockerAnswers(config),
  };
}

/** An engine that hangs does not answer either. */
const patienceMs = 5_000;

async function dockerAnswers(config: SkepConfig): Promise<boolean> {
  const { createDockerRuntime } = await import('../../adapters/sandbox-runtime/docker/index.ts');
  const { kind: _, ...options } = dockerOptions(config);
  try {
    const runtime = createDockerRuntime({ ...options, deployment: newDeploymentId(), callTimeoutMs: patienceMs });
    await using closers = new AsyncDisposableStack();
    closers.defer(() => runtime.close());
    return (await runtime.check()).ok;
  } catch (error) {
    // What is configured in a way that can't work, a context of Docker's client that does not exist, does not answer.
    if (isFailure(error)) return false;
    throw error;
  }
}
