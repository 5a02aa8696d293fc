import type Docker from 'dockerode';
import type { SandboxIsolation, SandboxPort, SandboxResources } from '../../../domain/sandbox-spec.ts';
import type { SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { containerName, labels, reservedPrefix } from './labels.ts';
import { endpointConfig } from './networks.ts';
import { volumeMounts } from './volumes.ts';

interface ContainerPlan {
  readonly deployment: string;
  readonly launch: SandboxLaunch;
  /** The name of a network; `none` is none. */
  readonly network: string;
  /** What exposed ports are bound to. */
  readonly publishAddress: string;
}

/** What the engine is asked to make for a sandbox. */
export function containerConfig({ deployment, launch, network, publishAddress }: ContainerPlan): Docker.ContainerCreateOptions {
  const { id, spec } = launch;
  const ports = [...new Set(spec.ports.map(({ port }) => `${port}/tcp`))];
  return {
    name: containerName(deployment, id),
    Image: spec.image ?? '',
    // The command is run as it is, and not given to a program of the image.
    ...(spec.command !== null && { Entrypoint: [...spec.command], Cmd: [] }),
    ...(spec.isolation.user !== null && { User: spec.isolation.user }),
    WorkingDir: spec.workingDir,
    Env: environment(launch),
    Labels: {
      ...userLabels(spec.labels),
      [labels.deployment]: deployment,
      [labels.sandbox]: id,
      [labels.ports]: JSON.stringify(spec.ports.map(({ name, port }) => ({ name, port }))),
    },
    ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
    HostConfig: {
      ...hardening(spec.isolation, spec.resources),
      NetworkMode: network,
      // No host port: the engine chooses a free one.
      PortBindings: Object.fromEntries(ports.map((port) => [port, [{ HostIp: publishAddress, HostPort: '' }]])),
      Mounts: volumeMounts(deployment, launch),
    },
    ...(network !== 'none' && { NetworkingConfig: { EndpointsConfig: { [network]: endpointConfig } } }),
  };
}

function userLabels(given: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(given).filter(([name]) => !name.startsWith(reservedPrefix)));
}

/** The environment of a sandbox's command, as the engine takes it. What Skep says wins over what the spec says. */
function environment({ id, spec, sessionApiKey }: SandboxLaunch): string[] {
  const variables = {
    ...spec.initialEnv,
    ...portVariables(spec.ports),
    [spec.sessionKeyEnv]: sessionApiKey,
    SKEP_WORKSPACE: spec.workingDir,
    SKEP_SANDBOX_ID: id,
  };
  return Object.entries(variables).map(([name, value]) => `${name}=${value}`);
}

/** The same variables as where sandboxes share the host's ports, so that one command runs in both. */
function portVariables(ports: readonly SandboxPort[]): Record<string, string> {
  const variables = ports.flatMap(({ name, port }) => [
    [`SKEP_PORT_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`, String(port)],
    [`SKEP_PORT_${port}`, String(port)],
  ]);
  const [only, ...others] = ports;
  if (only !== undefined && others.length === 0) variables.push(['PORT', String(only.port)]);
  return Object.fromEntries(variables);
}

const cpuPeriod = 100_000;

/** How a container is held apart from the machine, and what it may take of it. */
function hardening(isolation: SandboxIsolation, resources: SandboxResources): Docker.HostConfig {
  return {
    CapDrop: ['ALL'],
    CapAdd: [...isolation.capabilities],
    SecurityOpt: [...(isolation.newPrivileges ? [] : ['no-new-privileges']), ...(isolation.seccomp === 'unconfined' ? ['seccomp=unconfined'] : [])],
    ReadonlyRootfs: isolation.readOnlyRoot,
    IpcMode: 'private',
    // A first process that passes on signals and buries the dead.
    Init: true,
    RestartPolicy: { Name: 'no' },
    // Where the host runs out of memory, a sandbox goes before what is not one.
    OomScoreAdj: 500,
    ...(isolation.ociRuntime !== null && { Runtime: isolation.ociRuntime }),
    ...limits(resources),
  };
}

function limits({ cpus, memoryBytes, pids, openFiles, logBytes }: SandboxResources): Docker.HostConfig {
  return {
    // As a quota, since a number of CPUs is refused by a machine that has fewer.
    ...(cpus !== null && { CpuPeriod: cpuPeriod, CpuQuota: Math.max(1_000, Math.round(cpus * cpuPeriod)) }),
    ...(memoryBytes !== null && { Memory: memoryBytes, MemorySwap: memoryBytes }),
    ...(pids !== null && { PidsLimit: pids }),
    ...(openFiles !== null && { Ulimits: [{ Name: 'nofile', Soft: openFiles, Hard: openFiles }] }),
    // The current file and one before it.
    LogConfig: { Type: 'json-file', Config: logBytes === null ? {} : { 'max-size': String(Math.max(1_024, Math.floor(logBytes / 2))), 'max-file': '2' } },
  };
}
