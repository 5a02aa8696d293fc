import { isFailure } from '../../domain/failure.ts';
import type { DockerRuntimeOptions, ProcessRuntimeOptions } from '../options.ts';
import { defaultImage } from '../wiring/default-specs.ts';
import { ConfigError, type ConfigProblem, problemWith } from './config-error.ts';
import type { SkepConfig } from './config.ts';
import { newDeploymentId, readDeploymentFile } from './deployment-file.ts';
import { settings } from './settings.ts';

/** What a choice is made from. */
interface ChoiceFacts {
  /** The runtime that the data folder's sandboxes were started with; null where it has none. */
  readonly inUse: string | null;
  /** Does Docker's engine answer? */
  readonly dockerAnswers: () => Promise<boolean>;
}

interface RuntimeChoice {
  readonly options: DockerRuntimeOptions | ProcessRuntimeOptions;
  /** What a person should know about it. */
  readonly warnings: readonly string[];
}

/**
 * The runtime of a server. `auto` stays with the runtime that has sandboxes, so that an engine that is down for a moment
 * makes nobody's sandbox a lost one; a data folder without any takes Docker if its engine answers, and else, where only this
 * machine's programs reach the server, processes without isolation. Throws a {@link ConfigError}.
 */
export async function chooseRuntime(config: SkepConfig, { inUse, dockerAnswers }: ChoiceFacts): Promise<RuntimeChoice> {
  const { sandboxRuntime } = config;
  if (sandboxRuntime !== 'auto') {
    const lost = inUse === null || inUse === sandboxRuntime ? [] : [`the data folder has sandboxes of the runtime ${inUse}, which ${sandboxRuntime} does not see: they become MISSING`];
    return sandboxRuntime === 'docker' ? { options: dockerOptions(config), warnings: lost } : { options: { kind: 'process' }, warnings: [...lost, noIsolation] };
  }
  if (inUse === 'docker' || (inUse === null && (await dockerAnswers()))) {
    const problems = missingImages(config);
    if (problems.length > 0) throw new ConfigError(problems);
    return { options: dockerOptions(config), warnings: [] };
  }
  if (isLoopback(config.host)) return { options: { kind: 'process' }, warnings: [noIsolation] };
  const why = inUse === null ? "is auto, and Docker's engine does not answer; it" : 'is auto, and the data folder has sandboxes of the runtime process; auto';
  throw new ConfigError([
    problemWith(settings.sandboxRuntime, `${why} does not choose the process runtime while ${settings.host.variable} is no loopback address, since that has no isolation; set it to process to have it all the same`),
  ]);
}

const noIsolation = 'sandboxes are plain processes of this machine, without isolation: run only what you trust';

/** Can only programs of this machine reach the address? */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

export function dockerOptions({ dockerHost, dockerPublishAddress, dockerUrlHost }: SkepConfig): DockerRuntimeOptions {
  return {
    kind: 'docker',
    ...(dockerHost !== undefined && { host: dockerHost }),
    ...(dockerPublishAddress !== undefined && { publishAddress: dockerPublishAddress }),
    ...(dockerUrlHost !== undefined && { urlHost: dockerUrlHost }),
  };
}

/** What containers can't be made without. The configuration itself refuses their absence where Docker is chosen by name. */
function missingImages({ specs }: SkepConfig): ConfigProblem[] {
  const problem = 'is missing, and Docker needs it (SKEP_SANDBOX_RUNTIME is auto and chose Docker; set it to process to run the command on this machine instead)';
  return (specs ?? []).flatMap(({ id, image }) => (image === null ? [{ name: `spec ${id}, image`, problem, form: `the name of an image, for example ${defaultImage}` }] : []));
}

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
