import { isFailure } from '../../domain/failure.ts';
import type { DockerRuntimeOptions, ProcessRuntimeOptions } from '../options.ts';
import { defaultImage } from '../wiring/default-specs.ts';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import type { SkepConfig } from './file-schema.ts';
import { newDeploymentId, readDeploymentFile } from './deployment-file.ts';
import { problemWith } from './settings.ts';
import { dockerOptions } from './skep-options.ts';

/** What the choice of a runtime depends on, besides the configuration. */
interface ChoiceFacts {
  /** The runtime with which the data folder's sandboxes were started; null without sandboxes. */
  readonly inUse: string | null;
  readonly dockerAnswers: () => Promise<boolean>;
}

interface RuntimeChoice {
  readonly options: DockerRuntimeOptions | ProcessRuntimeOptions;
  /** For a person, in sentences. */
  readonly warnings: readonly string[];
}

const noIsolation = 'sandboxes are plain processes of this machine, without isolation: run only what you trust';

/**
 * Chooses the runtime of a server. `auto` keeps the runtime that has sandboxes, so that none is lost while an engine is down for a
 * moment. In a data folder without sandboxes it takes Docker if its engine answers. Otherwise it takes processes without isolation,
 * but only if no other machine can reach the server. Throws a {@link ConfigError}.
 */
export async function chooseRuntime(config: SkepConfig, { inUse, dockerAnswers }: ChoiceFacts): Promise<RuntimeChoice> {
  const { sandboxRuntime, host } = config;
  if (sandboxRuntime !== 'auto') {
    const isLost = inUse !== null && inUse !== sandboxRuntime;
    const lost = `the data folder has sandboxes of the runtime ${inUse}, which ${sandboxRuntime} does not see: they become MISSING`;
    const warnings = [...(isLost ? [lost] : []), ...(sandboxRuntime === 'process' ? [noIsolation] : [])];
    return { options: sandboxRuntime === 'docker' ? dockerOptions(config) : { kind: 'process' }, warnings };
  }
  if (inUse === 'docker' || (inUse === null && (await dockerAnswers()))) {
    const problems = missingImages(config);
    if (problems.length > 0) throw new ConfigError(problems);
    return { options: dockerOptions(config), warnings: [] };
  }
  const isLoopback = host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
  if (isLoopback) return { options: { kind: 'process' }, warnings: [noIsolation] };
  const why = inUse === null ? "Docker's engine does not answer" : 'the data folder has sandboxes of the runtime process';
  throw new ConfigError([problemWith(
    'sandbox_runtime',
    `is auto, and ${why}; auto does not choose the process runtime while SKEP_HOST is no loopback address, since that runtime has no `
    + 'isolation; set it to process to have it all the same',
  )]);
}

/** Returns the specs without an image. If Docker is chosen by name, the configuration itself refuses them. */
function missingImages({ specs }: SkepConfig): ConfigProblem[] {
  const problem = 'is missing, and Docker needs it '
    + '(SKEP_SANDBOX_RUNTIME is auto and chose Docker; set it to process to run the command on this machine instead)';
  const form = `the name of an image, for example ${defaultImage}`;
  return (specs ?? []).filter(({ image }) => image === null).map(({ id }) => ({ name: `spec ${id}, image`, problem, form }));
}

/** Looks into the data folder, and asks the engine if the choice depends on it. */
export function choiceFacts(config: SkepConfig, { hasSandboxes }: { readonly hasSandboxes: boolean }): ChoiceFacts {
  return {
    // A folder from before runtimes were recorded has processes.
    inUse: hasSandboxes ? (readDeploymentFile(config.dataDir)?.runtime ?? 'process') : null,
    dockerAnswers: () => dockerAnswers(config),
  };
}

/** An engine that hangs does not answer either. */
const engineTimeoutMs = 5_000;

async function dockerAnswers(config: SkepConfig): Promise<boolean> {
  const { createDockerRuntime } = await import('../../adapters/sandbox-runtime/docker/index.ts');
  const { kind: _, ...options } = dockerOptions(config);
  try {
    await using closers = new AsyncDisposableStack();
    const runtime = createDockerRuntime({ ...options, deployment: newDeploymentId(), callTimeoutMs: engineTimeoutMs });
    closers.defer(() => runtime.close());
    return (await runtime.check()).ok;
  } catch (error) {
    // A configuration of Docker's client that can't work, for example a context that does not exist.
    if (isFailure(error)) return false;
    throw error;
  }
}
