import type Docker from 'dockerode';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { pause, realTimers } from '../../shared/timeout.ts';
import { containerConfig } from './container-config.ts';
import { type Connection, hasMessage, messageOf, Refusal, statusOf } from './engine.ts';
import { whyUnusable } from './images.ts';
import { isGone, type Networks } from './networks.ts';
import { describeRefusal } from './status-details.ts';

export interface CreatorOptions {
  readonly connection: Connection;
  readonly networks: Networks;
  readonly publishAddress: string;
  readonly callTimeoutMs: number;
}

const takenMs = 10;

export type Creator = (launch: SandboxLaunch, progress: Progress, signal: AbortSignal) => Promise<Docker.ContainerInspectInfo | 'foreign'>;

/** Makes a sandbox's container, or finds that somebody else made it meanwhile. Throws `Refusal` where the engine won't. */
export function creator({ connection, networks, publishAddress, callTimeoutMs }: CreatorOptions): Creator {
  const { docker, deployment, call, find } = connection;

  /** A name is taken a little before the container that has it can be found, so whoever comes second may have to wait for that. */
  async function make(launch: SandboxLaunch, network: string): Promise<Docker.ContainerInspectInfo | 'foreign'> {
    const config = containerConfig({ deployment, launch, network, publishAddress });
    const deadline = performance.now() + callTimeoutMs;
    for (;;) {
      const taken = await call((abortSignal) => docker.createContainer({ ...config, abortSignal })).then(
        () => null,
        (error: unknown) => {
          if (statusOf(error) !== 409 || performance.now() > deadline) throw error;
          return error;
        },
      );
      const found = await find(launch.id);
      if (found !== null) return found;
      if (taken === null) throw new Refusal('its container was removed while it was made');
      await pause(realTimers, takenMs, connection.closed);
    }
  }

  return async (launch, progress, signal) => {
    const { image, isolation } = launch.spec;
    const unusable = whyUnusable(image);
    if (image === null || unusable !== null) throw new Refusal(unusable ?? '');
    signal.throwIfAborted();
    progress('making its container');
    try {
      const network = await networks.choose(isolation.network);
      signal.throwIfAborted();
      return await make(launch, network).catch(async (error: unknown) => {
        if (!isGone(error)) throw error;
        return make(launch, (await networks.next(isolation.network, [])) ?? network);
      });
    } catch (error) {
      if (!hasMessage(error)) throw error;
      throw new Refusal(refusal(image, error), { cause: error });
    }
  };
}

function refusal(image: string, error: unknown): string {
  const said = messageOf(error);
  if (/no such image/i.test(said)) return `the image ${image} is not on the engine, and has to be pulled first`;
  if (/no command specified/i.test(said)) return `neither its spec nor the image ${image} has a command`;
  const runtime = /unknown (?:or invalid )?runtime(?: name| specified)?:? (\S+)/i.exec(said);
  if (runtime !== null) return `the engine has no OCI runtime ${runtime[1]}; install it there, or change the spec`;
  return describeRefusal(said);
}
