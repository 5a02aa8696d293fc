import type Docker from 'dockerode';
import type { SandboxLaunch } from '../../../../ports/sandbox-runtime.ts';
import { containerName, labels, reservedPrefix } from '../identity.ts';
import { environment } from './environment.ts';
import { hardening } from './hardening.ts';
import { endpointConfig } from './networks.ts';
import { volumeMounts } from './volumes.ts';

export interface ContainerPlan {
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
