import type Docker from 'dockerode';
import { explained } from '../../../domain/reason.ts';
import type { SandboxResources, SandboxSpec } from '../../../domain/sandbox-spec.ts';
import type { KeptLaunch, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { portVariables } from '../port-variables.ts';
import { volumeMounts } from './container-mounts.ts';
import { Refusal } from './engine.ts';
import { containerName, labels, reservedPrefix } from './labels.ts';
import { endpointConfig } from './networks.ts';
import { dockerSpecOptions, invalidDockerOptions } from './spec-options.ts';
import { commandWithSecrets } from './secret-file.ts';

/**
 * Returns the engine's options to create a sandbox's container. The network `none` means no network. Throws `Refusal` if the spec's Docker
 * options are invalid.
 */
export function containerConfig(
  { deployment, launch, network, publishAddress }: Record<'deployment' | 'network' | 'publishAddress', string> & { launch: SandboxLaunch },
): Docker.ContainerCreateOptions {
  const { id, spec, ownerId } = launch;
  if (spec.secrets.length > 0 && spec.command === null) {
    throw new Refusal(explained('the spec has secrets, which only a command of its own gets; write the command into the spec'));
  }
  const ports = [...new Set(spec.ports.map(({ port }) => `${port}/tcp`))];
  return {
    name: containerName(deployment, id),
    Image: spec.image ?? '',
    // The command runs as it is, without the image's entrypoint.
    ...(spec.command !== null && { Entrypoint: spec.secrets.length > 0 ? commandWithSecrets(spec.command) : [...spec.command], Cmd: [] }),
    ...(spec.isolation.user !== null && { User: spec.isolation.user }),
    WorkingDir: spec.workingDir,
    Env: environment(launch),
    Labels: {
      ...Object.fromEntries(Object.entries(spec.labels).filter(([name]) => !name.startsWith(reservedPrefix))),
      [labels.deployment]: deployment,
      [labels.sandbox]: id,
      [labels.spec]: spec.id,
      ...(ownerId !== undefined && { [labels.owner]: ownerId }),
      [labels.ports]: JSON.stringify(spec.ports.map(({ name, port }) => ({ name, port }))),
    },
    ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
    HostConfig: {
      ...hardening(spec),
      ...limits(spec.resources),
      NetworkMode: network,
      // No host port: the engine chooses a free one.
      PortBindings: Object.fromEntries(ports.map((port) => [port, [{ HostIp: publishAddress, HostPort: '' }]])),
      Mounts: volumeMounts(deployment, launch),
    },
    ...(network !== 'none' && { NetworkingConfig: { EndpointsConfig: { [network]: endpointConfig } } }),
  };
}

/** Returns the parts of a launch that a container keeps. Its environment can't be changed. */
export function keptLaunch(found: Docker.ContainerInspectInfo | null): KeptLaunch | null {
  if (found === null) return null;
  const { Labels, Env } = found.Config;
  const variables = Env.map((line): [string, string] => [line.split('=', 1)[0] ?? '', line.slice(line.indexOf('=') + 1)]);
  return { specId: Labels[labels.spec] ?? null, ownerId: Labels[labels.owner] ?? null, fixedEnv: Object.fromEntries(variables) };
}

/** The environment of a sandbox's command. Skep's own variables win over those of the spec. */
function environment({ id, spec, sessionApiKey }: SandboxLaunch): string[] {
  const variables = {
    ...spec.initialEnv,
    ...portVariables(spec.ports.map(({ name, port }) => ({ name, port, reachedAt: port }))),
    [spec.sessionKeyEnv]: sessionApiKey,
    SKEP_WORKSPACE: spec.workingDir,
    SKEP_SANDBOX_ID: id,
  };
  return Object.entries(variables).map(([name, value]) => `${name}=${value}`);
}

/** How a container is isolated from the machine. */
function hardening({ isolation, runtimeOptions }: SandboxSpec): Docker.HostConfig {
  const options = dockerSpecOptions(runtimeOptions);
  if (options === null) throw new Refusal(invalidDockerOptions);
  const { capabilities, newPrivileges, seccomp, ociRuntime } = options;
  return {
    CapDrop: ['ALL'],
    CapAdd: capabilities,
    SecurityOpt: [...(newPrivileges ? [] : ['no-new-privileges']), ...(seccomp === 'unconfined' ? ['seccomp=unconfined'] : [])],
    ReadonlyRootfs: isolation.readOnlyRoot,
    IpcMode: 'private',
    // A first process that passes on signals and reaps zombies.
    Init: true,
    RestartPolicy: { Name: 'no' },
    // If the host runs out of memory, sandboxes are killed first.
    OomScoreAdj: 500,
    ...(ociRuntime !== null && { Runtime: ociRuntime }),
  };
}

const cpuPeriod = 100_000;

function limits({ cpus, memoryBytes, pids, openFiles, logBytes, diskBytes }: SandboxResources): Docker.HostConfig {
  // The current log file and one before it.
  const logFiles = logBytes === null ? {} : { 'max-size': String(Math.max(1_024, Math.floor(logBytes / 2))), 'max-file': '2' };
  return {
    // As a quota, since a machine refuses a number of CPUs that it does not have.
    ...(cpus !== null && { CpuPeriod: cpuPeriod, CpuQuota: Math.max(1_000, Math.round(cpus * cpuPeriod)) }),
    ...(memoryBytes !== null && { Memory: memoryBytes, MemorySwap: memoryBytes }),
    ...(pids !== null && { PidsLimit: pids }),
    ...(openFiles !== null && { Ulimits: [{ Name: 'nofile', Soft: openFiles, Hard: openFiles }] }),
    LogConfig: { Type: 'json-file', Config: logFiles },
    ...(diskBytes !== null && { StorageOpt: { size: String(diskBytes) } }),
  };
}
