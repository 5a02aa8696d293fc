import type Docker from 'dockerode';
import type { SandboxLaunch } from '../../../../ports/sandbox-runtime.ts';
import type { Connection } from '../connect.ts';
import { statusOf } from '../engine-errors.ts';
import type { Move } from '../events/watch.ts';
import { stateOf } from '../facts/facts.ts';
import { isFull, isGone, maxNetworks, type Networks } from './networks.ts';

export interface RunnerOptions {
  readonly connection: Connection;
  readonly networks: Networks;
}

export type Runner = (container: Docker.ContainerInspectInfo, launch: SandboxLaunch, move: Move) => Promise<void>;

/** Runs a container that does not run. One that can't be run keeps the engine's word for why. */
export function runner({ connection, networks }: RunnerOptions): Runner {
  const { docker, call, find } = connection;

  /** Answers with the error of an engine that refused. */
  async function attempt(container: Docker.Container): Promise<unknown> {
    try {
      await call((abortSignal) => container.start({ abortSignal }));
      return null;
    } catch (error) {
      if (statusOf(error) === null) throw error;
      return statusOf(error) === 304 ? null : error;
    }
  }

  async function isDecided(id: string, containerId: string): Promise<boolean> {
    const now = await find(id);
    return now === null || now === 'foreign' || now.Id !== containerId || stateOf(now.State.Status, now.State.Error) !== 'created';
  }

  return async ({ Id, HostConfig, NetworkSettings }, { id, spec }, move) => {
    const container = docker.getContainer(Id);
    const full: string[] = [];
    let network = Object.keys(NetworkSettings.Networks)[0] ?? HostConfig.NetworkMode ?? 'none';
    move.aim('running');
    let error = await attempt(container);
    for (let moves = 0; moves <= maxNetworks && (isFull(error) || isGone(error)); moves += 1) {
      if (isFull(error)) full.push(network);
      const next = await networks.next(spec.isolation.network, full);
      if (next === null) break;
      await networks.move(Id, network, next);
      network = next;
      error = await attempt(container);
    }
    if (error !== null && !(await isDecided(id, Id))) throw error;
  };
}
