import { setTimeout as pause } from 'node:timers/promises';
import type Docker from 'dockerode';
import { explained, type Reason } from '../../../domain/reason.ts';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { containerConfig } from './container-config.ts';
import { type Engine, engineMessage, Refusal, statusOf } from './engine.ts';
import type { Firewall } from './firewall.ts';
import { isGone, type Networks } from './networks.ts';
import { launchRefusal } from './launch-refusals.ts';

export interface CreateOptions {
  readonly engine: Engine;
  readonly networks: Networks;
  /** Null if the firewall is switched off. */
  readonly firewall: Firewall | null;
  /** The address of the engine's host that exposed ports are bound to. */
  readonly publishAddress: string;
  readonly callTimeoutMs: number;
}

type Created = Promise<Docker.ContainerInspectInfo | 'foreign'>;

const takenMs = 10;

/** Creates a sandbox's container, or returns the one that another caller created meanwhile. Throws `Refusal` if the engine can't. */
export async function createContainer(options: CreateOptions, launch: SandboxLaunch, progress: Progress, signal: AbortSignal): Created {
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
async function make({ engine, publishAddress, callTimeoutMs }: CreateOptions, launch: SandboxLaunch, network: string): Created {
  const { docker, deployment, call, find } = engine;
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
    const found = await find(launch.id);
    if (found !== null) return found;
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
