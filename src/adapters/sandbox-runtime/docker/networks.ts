import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import { Refusal } from '../../../domain/failure.ts';
import { explained } from '../../../domain/reason.ts';
import type { SandboxIsolation } from '../../../domain/sandbox-spec.ts';
import { type Engine, messageOf, statusOf } from './engine.ts';
import { bridgePrefixes } from './firewall.ts';
import { labels } from './labels.ts';

type Kind = SandboxIsolation['network'];

/**
 * The container itself gets the addresses of the host's metadata services. So its requests to them reach only itself, and no packet to them
 * leaves the bridge. They need no firewall rule, unlike other metadata addresses (see `firewall.ts`).
 */
export const endpointConfig: Docker.EndpointSettings & { IPAMConfig: { LinkLocalIPs: string[] } } = {
  IPAMConfig: { LinkLocalIPs: ['169.254.169.254', '169.254.170.2', '169.254.170.23'] },
};

/** The engine's address pools have room for about this many networks. */
export const maxNetworks = 31;

/** The time limit of each call during close, which must be short. */
const closingMs = 2_000;

/** How often, and with which pauses, to look for a network that another process is creating. */
const mostTries = 50;
const listedMs = 100;

const noAddresses = explained(
  'the engine has no addresses left for another network; remove networks that nobody uses, or give it more with its setting '
  + 'default-address-pools',
);

/** The networks of a deployment. Its sandboxes share them, since creating a network takes longer than creating a container. */
export class Networks {
  readonly #engine: Engine;
  readonly #ensured = new Set<string>();
  /** The number of the last network that had room. */
  readonly #current = new Map<Kind, number>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Returns the network for a new sandbox. Throws `Refusal` if the engine can't create it. */
  async choose(kind: Kind): Promise<string> {
    if (kind === 'none') return 'none';
    const name = this.#nameOf(kind, this.#current.get(kind) ?? 1);
    await this.#ensure(kind, name);
    return name;
  }

  /** Returns the next network to try, except those in `full`. Creates it again if it is gone. Null if there is none. */
  async next(kind: Kind, full: readonly string[]): Promise<string | null> {
    if (kind === 'none') return null;
    for (let number = 1; number <= maxNetworks; number += 1) {
      const name = this.#nameOf(kind, number);
      if (full.includes(name)) continue;
      this.#ensured.delete(name);
      await this.#ensure(kind, name);
      this.#current.set(kind, number);
      return name;
    }
    return null;
  }

  /** Moves a stopped container to another network. */
  async move(container: string, from: string, to: string): Promise<void> {
    const { docker, call } = this.#engine;
    await call(() => docker.getNetwork(from).disconnect({ Container: container, Force: true })).catch((error: unknown) => {
      // The network is gone, or the container is not in it.
      if (statusOf(error) === null) throw error;
    });
    await call(() => docker.getNetwork(to).connect({ Container: container, EndpointConfig: endpointConfig }));
  }

  /** Removes all networks if the deployment has no sandbox, since the engine has room for few. They are created again when needed. */
  async removeUnused(): Promise<void> {
    const { docker, deployment, call } = this.#engine;
    const limits = { limitMs: closingMs };
    const filters = { label: [`${labels.deployment}=${deployment}`] };
    const containers = await call((abortSignal) => docker.listContainers({ all: true, limit: 1, filters, abortSignal }), limits);
    if (containers.length > 0) return;
    const found = await call((abortSignal) => docker.listNetworks({ filters, abortSignal }), limits);
    for (const { Id } of found) await call((abortSignal) => docker.getNetwork(Id).remove({ abortSignal }), limits);
  }

  #nameOf(kind: Kind, number: number): string {
    return `skep_${this.#engine.deployment}_${kind}${number === 1 ? '' : `_${number}`}`;
  }

  async #ensure(kind: Exclude<Kind, 'none'>, name: string): Promise<void> {
    if (!this.#ensured.has(name)) await this.#make(kind, name);
    this.#ensured.add(name);
  }

  async #make(kind: Exclude<Kind, 'none'>, name: string): Promise<void> {
    const { docker, call, deployment, closed } = this.#engine;
    for (let tries = 1; ; tries += 1) {
      try {
        return void (await call((abortSignal) => docker.createNetwork({ ...networkConfig(kind, name, deployment), abortSignal })));
      } catch (error) {
        if (/address pool/.test(messageOf(error))) throw new Refusal(noAddresses, { cause: error });
        // If two callers create one network at once, the engine refuses the second, by its name check or by its bridge check.
        if (statusOf(error) !== 409 && statusOf(error) !== 403) throw error;
        const filters = { name: [name] };
        const found = (await call((abortSignal) => docker.listNetworks({ filters, abortSignal }))).find(({ Name }) => Name === name);
        if (found?.Labels?.[labels.deployment] === deployment) return;
        // The engine lists a network only a moment after it creates its bridge.
        if (found !== undefined || tries === mostTries) {
          throw new Refusal(explained(`the engine has a network ${name} that is not Skep's; remove it`), { cause: error });
        }
      }
      await sleep(listedMs, undefined, { signal: closed });
    }
  }
}

/** Returns whether the engine reports that a network has no room for another container. */
export function isFull(error: unknown): boolean {
  return /exchange full|no available (?:IPv4 )?addresses/i.test(messageOf(error));
}

/** Returns whether the engine reports that a network does not exist. */
export function isGone(error: unknown): boolean {
  return /network \S+ not found|could not find a network|no such network/i.test(messageOf(error));
}

function networkConfig(kind: Exclude<Kind, 'none'>, name: string, deployment: string): Docker.NetworkCreateOptions {
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return {
    Name: name,
    CheckDuplicate: true,
    Driver: 'bridge',
    // The firewall's rules are for IPv4.
    EnableIPv6: false,
    Labels: { [labels.deployment]: deployment },
    Options: {
      'com.docker.network.bridge.name': `${bridgePrefixes[kind]}-${digest}`,
      'com.docker.network.bridge.enable_icc': String(kind === 'shared'),
    },
  };
}
