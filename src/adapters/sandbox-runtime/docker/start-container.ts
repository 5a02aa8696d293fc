import { setTimeout as pause } from 'node:timers/promises';
import type Docker from 'dockerode';
import { explained, type Reason } from '../../../domain/reason.ts';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { containerConfig } from './container-config.ts';
import { type Engine, engineMessage, Refusal, statusOf } from './engine.ts';
import type { Firewall } from './firewall.ts';
import { isOwn } from './labels.ts';
import { launchRefusal } from './launch-refusals.ts';
import { isFull, isGone, maxNetworks, type Networks } from './networks.ts';
import { stateOf } from './observed-sandbox.ts';
import { putSecrets } from './secret-file.ts';

export interface StartOptions {
  readonly engine: Engine;
  readonly networks: Networks;
  /** Null if the firewall is switched off. */
  readonly firewall: Firewall | null;
  /** The address of the engine's host that exposed ports are bound to. */
  readonly publishAddress: string;
  readonly callTimeoutMs: number;
}

type Found = Docker.ContainerInspectInfo;

const takenMs = 10;

/**
 * Creates a sandbox's container, or returns the one that another caller created meanwhile. Null if a container of somebody else has its
 * name. Throws `Refusal` if the engine can't create it.
 */
export async function createContainer(
  options: StartOptions, launch: SandboxLaunch, progress: Progress, signal: AbortSignal,
): Promise<Found | null> {
  const { networks } = options;
  const { image, isolation } = launch.spec;
  if (image === null) throw new Refusal({ code: 'image_not_named' });
  signal.throwIfAborted();
  progress({ code: 'creating_sandbox' });
  try {
    const network = await networks.choose(isolation.network);
    signal.throwIfAborted();
    return await make(options, launch, network).catch(async (error: unknown) => {
      if (!isGone(error)) throw error;
      return make(options, launch, (await networks.next(isolation.network, [])) ?? network);
    });
  } catch (error) {
    const message = engineMessage(error);
    if (message === null) throw error;
    throw new Refusal(refusal(image, message), { cause: error });
  }
}

/** The engine reserves a name a moment before its container can be found. So the second caller may have to wait for the container. */
async function make(
  { engine, publishAddress, callTimeoutMs }: StartOptions, launch: SandboxLaunch, network: string,
): Promise<Found | null> {
  const { docker, deployment, call, findByName } = engine;
  const config = containerConfig({ deployment, launch, network, publishAddress });
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
    await pause(takenMs);
    engine.closed.throwIfAborted();
  }
}

function refusal(image: string, message: string): Reason {
  if (/no such image/i.test(message)) return explained(`the image ${image} is not on the engine, and has to be pulled first`);
  if (/storage-opt|quota/i.test(message)) return { code: 'disk_limit_unavailable' };
  if (/no command specified/i.test(message)) return explained(`neither its spec nor the image ${image} has a command`);
  const runtime = /unknown (?:or invalid )?runtime(?: name| specified)?:? (\S+)/i.exec(message)?.[1];
  return runtime === undefined ? launchRefusal(message) : { code: 'isolation_unavailable', name: runtime, available: [] };
}

/** Starts a container, in another network if its own is full or gone. If it can't start, the engine keeps the reason. */
export async function startContainer(
  { engine, networks, firewall }: StartOptions, found: Found, { id, spec, secrets = {} }: SandboxLaunch,
): Promise<void> {
  const { Id, HostConfig, NetworkSettings } = found;
  if (spec.isolation.network !== 'none') await firewall?.ensure();
  await putSecrets(engine, found, secrets);
  const full: string[] = [];
  let network = Object.keys(NetworkSettings.Networks)[0] ?? HostConfig.NetworkMode ?? 'none';
  let error = await tryStart(engine, Id);
  for (let moves = 0; moves <= maxNetworks && (isFull(error) || isGone(error)); moves += 1) {
    if (isFull(error)) full.push(network);
    const next = await networks.next(spec.isolation.network, full);
    if (next === null) break;
    await networks.move(Id, network, next);
    network = next;
    error = await tryStart(engine, Id);
  }
  if (error === null) return;
  const now = await engine.find(id);
  if (now?.Id === Id && stateOf(now.State) === 'created') throw error;
}

/** Returns the error if the engine refused. */
async function tryStart({ docker, call }: Engine, containerId: string): Promise<unknown> {
  try {
    await call((abortSignal) => docker.getContainer(containerId).start({ abortSignal }));
    return null;
  } catch (error) {
    if (statusOf(error) === null) throw error;
    return statusOf(error) === 304 ? null : error;
  }
}
