import { createHash } from 'node:crypto';
import type Docker from 'dockerode';
import type { SandboxIsolation } from '../../../domain/sandbox-spec.ts';
import { type Connection, messageOf, Refusal, statusOf } from './engine.ts';
import { labels } from './labels.ts';

type Kind = SandboxIsolation['network'];

/**
 * The addresses of the host's metadata services are a container's own. So whoever asks there asks itself, and no packet to
 * any link-local address leaves the bridge. It needs no rule of a firewall.
 */
export const endpointConfig: Docker.EndpointSettings & { IPAMConfig: { LinkLocalIPs: string[] } } = {
  IPAMConfig: { LinkLocalIPs: ['169.254.169.254', '169.254.170.2', '169.254.170.23'] },
};

/** The engine's address pools hold about so many networks. */
export const maxNetworks = 31;

/** Of each call: nobody waits for long to see something closed. */
const tidyMs = 2_000;

/** The networks of a deployment, which its sandboxes share: making one costs more than making a container. */
export interface Networks {
  /** Where a new sandbox goes. Throws `Refusal` where its engine can't have it. */
  choose(kind: Kind): Promise<string>;
  /** Where to try next, made anew if it is gone, when those of `full` have no room; null where there is nowhere. */
  next(kind: Kind, full: readonly string[]): Promise<string | null>;
  /** Moves a container that does not run. */
  move(container: string, from: string, to: string): Promise<void>;
  /** Removes them all, if the deployment has no sandbox left: the engine has room for few. Whoever misses one makes it again. */
  tidy(): Promise<void>;
}

export function createNetworks({ docker, deployment, call }: Connection): Networks {
  const ours = { label: [`${labels.deployment}=${deployment}`] };
  const ensured = new Map<string, Promise<void>>();
  /** The number of the network that had room last. */
  const current = new Map<Kind, number>();
  const nameOf = (kind: Kind, number: number): string => `skep_${deployment}_${kind}${number === 1 ? '' : `_${number}`}`;

  async function make(kind: Kind, name: string): Promise<void> {
    try {
      await call((abortSignal) => docker.createNetwork({ ...networkConfig(kind, name, deployment), abortSignal }));
    } catch (error) {
      // The engine compares names before it makes one, and bridges while it does: one of the two stops whoever comes second.
      if (statusOf(error) !== 409 && statusOf(error) !== 403) throw refusalOf(error);
      const found = await call((abortSignal) => docker.listNetworks({ filters: ours, abortSignal }));
      if (!found.some(({ Name }) => Name === name)) throw new Refusal(`the engine has a network ${name} that is not Skep's; remove it`, { cause: error });
    }
  }

  function ensure(kind: Kind, name: string): Promise<void> {
    const known = ensured.get(name);
    if (known !== undefined) return known;
    const making = make(kind, name);
    ensured.set(name, making);
    making.catch(() => ensured.delete(name));
    return making;
  }

  return {
    async choose(kind) {
      if (kind === 'none') return 'none';
      const name = nameOf(kind, current.get(kind) ?? 1);
      await ensure(kind, name);
      return name;
    },
    async next(kind, full) {
      if (kind === 'none') return null;
      for (let number = 1; number <= maxNetworks; number += 1) {
        const name = nameOf(kind, number);
        if (full.includes(name)) continue;
        ensured.delete(name);
        await ensure(kind, name);
        current.set(kind, number);
        return name;
      }
      return null;
    },
    async move(container, from, to) {
      const leave = call(() => docker.getNetwork(from).disconnect({ Container: container, Force: true }));
      // Gone, or never joined: so it has left.
      await leave.catch((error: unknown) => {
        if (statusOf(error) === null) throw error;
      });
      await call(() => docker.getNetwork(to).connect({ Container: container, EndpointConfig: endpointConfig }));
    },
    async tidy() {
      const limits = { limitMs: tidyMs };
      const containers = await call((abortSignal) => docker.listContainers({ all: true, limit: 1, filters: ours, abortSignal }), limits);
      if (containers.length > 0) return;
      const found = await call((abortSignal) => docker.listNetworks({ filters: ours, abortSignal }), limits);
      for (const { Id } of found) await call((abortSignal) => docker.getNetwork(Id).remove({ abortSignal }), limits);
    },
  };
}

/** Does the engine say that a network has no room for another container? */
export function isFull(error: unknown): boolean {
  return /exchange full|no available (?:IPv4 )?addresses/i.test(messageOf(error));
}

/** Does the engine say that a network is not there? */
export function isGone(error: unknown): boolean {
  return /network \S+ not found|could not find a network|no such network/i.test(messageOf(error));
}

function networkConfig(kind: Kind, name: string, deployment: string): Docker.NetworkCreateOptions {
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return {
    Name: name,
    CheckDuplicate: true,
    Driver: 'bridge',
    Labels: { [labels.deployment]: deployment },
    Options: {
      'com.docker.network.bridge.name': `skep${kind === 'isolated' ? 'i' : 's'}-${digest}`,
      'com.docker.network.bridge.enable_icc': String(kind === 'shared'),
    },
  };
}

function refusalOf(error: unknown): unknown {
  return /address pool/.test(messageOf(error))
    ? new Refusal("the engine has no addresses left for another network; remove networks that nobody uses, or give it more with its setting default-address-pools", { cause: error })
    : error;
}
