import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import { Refusal } from '../../../domain/failure.ts';
import { explained, type Reason } from '../../../domain/reason.ts';
import type { SandboxResources, SandboxSpec } from '../../../domain/sandbox-spec.ts';
import type { KeptLaunch, Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { portVariables } from '../port-variables.ts';
import { volumeMounts } from './container-mounts.ts';
import { type Engine, engineMessage, reasonOfStartError, statusOf, tryStart } from './engine.ts';
import type { Firewall } from './firewall.ts';
import { containerName, isOwn, labels, reservedPrefix } from './labels.ts';
import { endpointConfig, isFull, isGone, maxNetworks, type Networks } from './networks.ts';
import { stateOf } from './observed-sandbox.ts';
import { commandWithSecrets, putSecrets } from './secret-file.ts';
import { dockerSpecOptions, invalidDockerOptions } from './spec-options.ts';

export interface StartOptions {
  readonly engine: Engine;
  readonly networks: Networks;
  /** Null if the firewall is switched off. */
  readonly firewall: Firewall | null;
  /** The address of the engine's machine that exposed ports are bound to. */
  readonly publishAddress: string;
  readonly callTimeoutMs: number;
}

const nameRetryMs = 10;

/**
 * Creates a sandbox's container, or returns the one that another caller created meanwhile. Null if a container of somebody else has its
 * name. Throws `Refusal` if the engine can't create it.
 */
export async function createContainer(
  options: StartOptions, launch: SandboxLaunch, progress: Progress, signal: AbortSignal,
): Promise<Docker.ContainerInspectInfo | null> {
  const { networks } = options;
  const { image, isolation } = launch.spec;
  if (image === null) throw new Refusal({ code: 'image_not_named' });
  signal.throwIfAborted();
  progress({ code: 'creating_sandbox' });
  try {
    const network = await networks.choose(isolation.network);
    signal.throwIfAborted();
    return await createByName(options, launch, image, network).catch(async (error: unknown) => {
      if (!isGone(error)) throw error;
      return createByName(options, launch, image, (await networks.next(isolation.network, [])) ?? network);
    });
  } catch (error) {
    const message = engineMessage(error);
    if (message === null) throw error;
    throw new Refusal(reasonOfCreateError(image, message), { cause: error });
  }
}

/** The engine reserves a name a moment before its container can be found. So the second caller may have to wait for the container. */
async function createByName(
  { engine, publishAddress, callTimeoutMs }: StartOptions, launch: SandboxLaunch, image: string, network: string,
): Promise<Docker.ContainerInspectInfo | null> {
  const { docker, deployment, call, findByName } = engine;
  const config = containerConfig({ deployment, launch, image, network, publishAddress });
  const deadline = performance.now() + callTimeoutMs;
  for (;;) {
    let isTaken = false;
    try {
      await call((abortSignal) => docker.createContainer({ ...config, abortSignal }));
    } catch (error) {
      if (statusOf(error) !== 409 || performance.now() > deadline) throw error;
      isTaken = true;
    }
    const found = await findByName(launch.id);
    if (found !== null) return isOwn(found, deployment, launch.id) ? found : null;
    if (!isTaken) throw new Refusal(explained('its container was removed while it was made'));
    await sleep(nameRetryMs);
    engine.closed.throwIfAborted();
  }
}

function reasonOfCreateError(image: string, message: string): Reason {
  if (/no such image/i.test(message)) return explained(`the image ${image} is not on the engine, and has to be pulled first`);
  if (/storage-opt|quota/i.test(message)) return { code: 'disk_limit_unavailable' };
  if (/no command specified/i.test(message)) return explained(`neither its spec nor the image ${image} has a command`);
  const runtime = /unknown (?:or invalid )?runtime(?: name| specified)?:? (\S+)/i.exec(message)?.[1];
  return runtime === undefined ? reasonOfStartError(message) : { code: 'isolation_unavailable', name: runtime, available: [] };
}

/**
 * Starts a container, in another network if its own is full or gone. Throws the engine's error if nothing ran: as a `Refusal` if the
 * container has run before, since `inspect` then reports the end of that run. A container that ran, or whose first start the engine
 * recorded as failed, reports it by `inspect`.
 */
export async function startContainer(
  options: StartOptions, found: Docker.ContainerInspectInfo, { id, spec, secrets = {} }: SandboxLaunch,
): Promise<void> {
  const { engine, firewall } = options;
  if (spec.isolation.network !== 'none') await firewall?.ensure();
  await putSecrets(engine, found, secrets);
  const error = await tryInNetworks(options, found, spec.isolation.network);
  if (error === null) return;
  const now = await engine.find(id);
  if (now?.Id !== found.Id) return;
  const message = engineMessage(error);
  // The engine itself is being restarted.
  const isPassing = statusOf(error) === 503 || /containerd\.sock/.test(message ?? '');
  if (isPassing || stateOf(now.State) === 'created') throw error;
  if (message === null || now.State.Status !== 'exited' || now.State.StartedAt !== found.State.StartedAt) return;
  throw new Refusal(reasonOfStartError(message), { cause: error });
}

/** Returns null, or the error of the last attempt. */
async function tryInNetworks(
  { engine, networks }: StartOptions, { Id, HostConfig, NetworkSettings }: Docker.ContainerInspectInfo,
  isolation: SandboxSpec['isolation']['network'],
): Promise<unknown> {
  const full: string[] = [];
  let network = Object.keys(NetworkSettings.Networks)[0] ?? HostConfig.NetworkMode ?? 'none';
  let error = await tryStart(engine, Id);
  for (let moves = 0; moves <= maxNetworks && (isFull(error) || isGone(error)); moves += 1) {
    if (isFull(error)) full.push(network);
    const next = await networks.next(isolation, full);
    if (next === null) break;
    await networks.move(Id, network, next);
    network = next;
    error = await tryStart(engine, Id);
  }
  return error;
}

/**
 * Returns the engine's options to create a sandbox's container. The network `none` means no network. Throws `Refusal` if the spec's Docker
 * options are invalid.
 */
export function containerConfig(
  { deployment, launch, image, network, publishAddress }:
    Record<'deployment' | 'image' | 'network' | 'publishAddress', string> & { readonly launch: SandboxLaunch },
): Docker.ContainerCreateOptions {
  const { id, spec, ownerId } = launch;
  if (spec.secrets.length > 0 && spec.command === null) {
    throw new Refusal(explained('the spec has secrets, which only a command of its own gets; write the command into the spec'));
  }
  const ports = [...new Set(spec.ports.map(({ port }) => `${port}/tcp`))];
  return {
    name: containerName(deployment, id),
    Image: image,
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
      // Also without an owner, since an image made from a sandbox has that one's labels.
      [labels.owner]: ownerId ?? '',
      [labels.ports]: JSON.stringify(spec.ports.map(({ name, port }) => ({ name, port }))),
    },
    ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
    HostConfig: {
      ...hardening(spec),
      ...resourceLimits(spec.resources),
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
  return { specId: Labels[labels.spec] ?? null, ownerId: Labels[labels.owner] || null, fixedEnv: Object.fromEntries(variables) };
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

function resourceLimits({ cpus, memoryBytes, pids, openFiles, logBytes, diskBytes }: SandboxResources): Docker.HostConfig {
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
