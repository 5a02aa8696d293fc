import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isLoopback } from '../../adapters/shared/plain-http.ts';
import { sentenceOfFailure } from '../../adapters/shared/failure-sentences.ts';
import { isFailure } from '../../domain/failure.ts';
import type { CheckResult } from '../../ports/check-result.ts';
import type { DockerRuntimeOptions, ProcessRuntimeOptions } from '../skep-options.ts';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import { newDeploymentId, readDeploymentFile } from './deployment-file.ts';
import { omitUndefined } from './field-schemas.ts';
import { configSchema, type SkepConfig } from './config-schema.ts';
import { fieldAt, toConfigProblem } from './field-problems.ts';
import { settingsSchema } from './settings.ts';
import { asksForContainer, dockerConflicts } from './spec-conflicts.ts';

const noIsolation = 'sandboxes are plain processes of this machine, without isolation: run only code that you trust';

/**
 * Chooses the runtime of a server. `auto` keeps the runtime that has sandboxes, so none is lost while an engine is down for a moment.
 * Without sandboxes it chooses Docker if an engine is configured, a spec needs one, or one answers. Otherwise it chooses processes without
 * isolation. It never does so if other machines can reach the server, or if a spec needs a container. Throws a {@link ConfigError}.
 */
export async function chooseRuntime(
  config: SkepConfig, lookups: RuntimeLookups = runtimeLookups(config),
): Promise<{ readonly options: DockerRuntimeOptions | ProcessRuntimeOptions; readonly warnings: readonly string[] }> {
  const { sandboxRuntime, host, specs } = config;
  const inUse = await lookups.inUse();
  if (sandboxRuntime !== 'auto') {
    const isLost = inUse !== null && inUse !== sandboxRuntime;
    const lost = `the data folder has sandboxes of the runtime ${inUse}, which ${sandboxRuntime} can't find: they become MISSING, `
      + `and can be resumed when Skep runs with ${inUse} again`;
    const warnings = [...(isLost ? [lost] : []), ...(sandboxRuntime === 'process' ? [noIsolation] : [])];
    const options = sandboxRuntime === 'docker' ? dockerOptions(config) : ({ kind: 'process' } as const);
    return { options, warnings };
  }
  const whyProcess = inUse === null ? await whyNotDocker(config, lookups) : inUse === 'docker' ? null : 'the data folder has its sandboxes';
  if (whyProcess === null) {
    const problems = dockerProblems(config);
    if (problems.length > 0) throw new ConfigError(problems);
    return { options: dockerOptions(config), warnings: [] };
  }
  const warnings = [`${noIsolation} (auto chose the process runtime: ${whyProcess})`];
  const unsafe = isLoopback(host) ? specs?.find(asksForContainer) : null;
  if (unsafe === undefined) return { options: { kind: 'process' }, warnings };
  const obstacle = unsafe === null ? 'SKEP_HOST is not a loopback address' : `spec ${unsafe.id} asks for an image or isolation`;
  const problem = `is auto, which would choose the process runtime (${whyProcess}); but that runtime has no isolation, and ${obstacle}; `
    + 'set it to docker, or to process to use that runtime anyway';
  throw new ConfigError([{ name: 'SKEP_SANDBOX_RUNTIME', problem, form: fieldAt(settingsSchema, ['sandbox_runtime']).form }]);
}

export function dockerOptions({ dockerHost, dockerPublishAddress, dockerUrlHost, dockerFirewall }: SkepConfig): DockerRuntimeOptions {
  const firewall = dockerFirewall === 'off' ? false : undefined;
  return { kind: 'docker', ...omitUndefined({ host: dockerHost, publishAddress: dockerPublishAddress, urlHost: dockerUrlHost, firewall }) };
}

/** Returns the reason why Docker is not chosen; null if it is. A spec that asks for isolation never runs without it. */
async function whyNotDocker({ specs, dockerHost }: SkepConfig, lookups: RuntimeLookups): Promise<string | null> {
  if ((specs ?? []).some(asksForContainer) || dockerHost !== undefined || (await lookups.isEngineConfigured())) return null;
  const { ok, detail } = await lookups.askEngine();
  return ok ? null : `no Docker engine is configured, and none answers: ${detail}`;
}

/** Returns why Docker can't run the specs. Only for `auto`: if Docker is set by name, `readConfig` reports these problems. */
function dockerProblems({ specs }: SkepConfig): ConfigProblem[] {
  const hint = '(SKEP_SANDBOX_RUNTIME is auto and chose Docker; set it to process to run the command on this machine instead)';
  return (specs ?? []).flatMap(({ image, resources: { memoryBytes } }, index) =>
    dockerConflicts({ image, memoryBytes }).map(({ path, problem }) =>
      toConfigProblem(configSchema, { path: ['specs', index, ...path], problem: `${problem} ${hint}` }, specs)));
}

/** The folder of the process runtime. */
export function sandboxesFolder({ dataDir }: Pick<SkepConfig, 'dataDir'>): string {
  return join(dataDir, 'sandboxes');
}

/** After this time, an engine or a git host that is only checked counts as not answering. */
export const shortLimitMs = 5_000;

/** Opens the runtime to see whether the engine answers. */
export async function openWithShortLimit(options: DockerRuntimeOptions & { readonly deployment: string }) {
  const { createDockerRuntime } = await import('../../adapters/sandbox-runtime/docker/index.ts');
  return createDockerRuntime({ ...omitUndefined(options), deployment: options.deployment, callTimeoutMs: shortLimitMs });
}

type RuntimeLookups = ReturnType<typeof runtimeLookups>;

function runtimeLookups(config: SkepConfig) {
  return {
    /** Returns the runtime of the last start; null if it is unknown, or if the data folder has no sandboxes that are not MISSING. */
    async inUse(): Promise<string | null> {
      const { inspectSqlite } = await import('../../adapters/store/sqlite/index.ts');
      const contents = await inspectSqlite(config.dataDir);
      if (contents.kind === 'none') return null;
      if (contents.kind === 'current') await contents.store.close();
      if (!contents.hasSandboxes) return null;
      // Only a server notes the runtime, and older versions did not. The sandboxes of the process runtime are in the data folder.
      return readDeploymentFile(config.dataDir)?.runtime ?? (existsSync(sandboxesFolder(config)) ? 'process' : null);
    },
    /** Whether this machine has a setting for the address of Docker's engine. */
    async isEngineConfigured(): Promise<boolean> {
      return (await import('../../adapters/sandbox-runtime/docker/engine-client.ts')).isEngineConfigured(process.env);
    },
    async askEngine(): Promise<CheckResult> {
      try {
        await using closers = new AsyncDisposableStack();
        const runtime = await openWithShortLimit({ ...dockerOptions(config), deployment: newDeploymentId() });
        closers.defer(() => runtime.close());
        return await runtime.check();
      } catch (error) {
        if (isFailure(error)) return { ok: false, detail: sentenceOfFailure(error) };
        throw error;
      }
    },
  };
}
