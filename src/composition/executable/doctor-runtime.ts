import { existsSync } from 'node:fs';
import type Docker from 'dockerode';
import { createClient } from '../../adapters/sandbox-runtime/docker/engine-client.ts';
import { EngineInfo } from '../../adapters/sandbox-runtime/docker/engine-info.ts';
import { statusOf } from '../../adapters/sandbox-runtime/docker/engine.ts';
import { dockerSpecOptions } from '../../adapters/sandbox-runtime/docker/spec-options.ts';
import { diskPressure, type DiskSpace, usedPercentOf } from '../../domain/disk-pressure.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { SkepConfig } from '../config/config-schema.ts';
import { readDeploymentFile } from '../config/deployment-file.ts';
import { chooseRuntime, openWithShortLimit, sandboxesFolder } from '../config/runtime-choice.ts';
import { createContainer, resolve } from '../create-skep.ts';
import type { CheckedOptions, DockerRuntimeOptions, ProcessRuntimeOptions } from '../skep-options.ts';
import { defaultSpecs } from '../wiring/default-specs.ts';
import { tokens } from '../wiring/tokens.ts';
import { type Finding, finding } from './doctor-findings.ts';

export async function checkRuntime(config: SkepConfig): Promise<Finding[]> {
  const { options, warnings } = await chooseRuntime(config);
  const found = [
    ...(config.sandboxRuntime === 'auto' ? [finding('runtime_chosen', { runtime: options.kind })] : []),
    ...warnings.map((detail) => finding('runtime_warning', { runtime: options.kind, detail })),
  ];
  await using closers = new AsyncDisposableStack();
  const runtime = await resolve(createContainer(optionsForExisting(config, options), closers), tokens.runtime);
  const { ok: answers, detail } = await runtime.check();
  const about = { runtime: runtime.name, detail };
  const answer = (engine: string | null): Finding =>
    answers ? finding('runtime_ok', about) : finding('runtime_failed', { ...about, engine });
  const isMade = options.kind === 'docker' || existsSync(sandboxesFolder(config));
  const disk = answers && isMade ? [checkDisk(await runtime.diskSpace(), config.diskUsedPercent)] : [];
  if (options.kind !== 'docker') return [...found, answer(null), ...disk];
  const client = createClient(options.host, process.env);
  closers.defer(() => client.close());
  const specs = config.specs ?? defaultSpecs({ runtime: options });
  return [...found, answer(client.shownAddress), ...disk, ...(answers ? await checkEngine(client.docker, specs) : [])];
}

/** Returns options that use only the existing content of the data folder, because a check must not write to it. */
function optionsForExisting(config: SkepConfig, runtime: DockerRuntimeOptions | ProcessRuntimeOptions): CheckedOptions {
  if (runtime.kind === 'docker') {
    const deployment = readDeploymentFile(config.dataDir)?.id ?? 'doctor';
    return { runtime: async () => await openWithShortLimit({ ...runtime, deployment }) };
  }
  const root = sandboxesFolder(config);
  return { runtime: existsSync(root) ? { ...runtime, root } : runtime };
}

function checkDisk(space: DiskSpace | null, limitPercent: number): Finding {
  if (space === null) return finding('disk_unknown', {});
  const share = { usedPercent: usedPercentOf(space), limitPercent };
  return finding(diskPressure(space, limitPercent) === null ? 'disk_ok' : 'disk_full', share);
}

async function checkEngine(docker: Docker, specs: readonly SandboxSpec[]): Promise<Finding[]> {
  const version = await docker.version();
  const info = EngineInfo.parse(await docker.info());
  const ociRuntimes = Object.keys(info.Runtimes ?? {});
  const cgroup = { cgroupVersion: info.CgroupVersion ?? null, cgroupDriver: info.CgroupDriver ?? null };
  return [
    finding('engine_ok', { version: version.Version, apiVersion: version.ApiVersion, ...cgroup, ociRuntimes }),
    ...(info.SwapLimit === false ? [finding('engine_without_swap_limit', {})] : []),
    ...specs.flatMap((spec) => checkOciRuntime(spec, ociRuntimes)),
    ...(await Promise.all(specs.map((spec) => checkImage(docker, spec)))),
  ];
}

function checkOciRuntime({ id, runtimeOptions }: SandboxSpec, known: readonly string[]): Finding[] {
  const ociRuntime = dockerSpecOptions(runtimeOptions)?.ociRuntime ?? null;
  if (ociRuntime === null) return [];
  return [finding(known.includes(ociRuntime) ? 'oci_runtime_ok' : 'oci_runtime_missing', { specId: id, ociRuntime })];
}

async function checkImage(docker: Docker, { id: specId, image }: SandboxSpec): Promise<Finding> {
  if (image === null) return finding('image_not_named', { specId });
  try {
    const { Size, Architecture } = await docker.getImage(image).inspect();
    return finding('image_ok', { specId, image, architecture: Architecture, bytes: Size });
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
    return finding('image_absent', { specId, image });
  }
}
