import { createHash } from 'node:crypto';
import type Docker from 'dockerode';
import type { SandboxIsolation } from '../../../domain/sandbox-spec.ts';
import { type Engine, messageOf, Refusal, statusOf } from './engine.ts';
import { labels } from './labels.ts';
import { reasons } from './status-reasons.ts';

type Kind = SandboxIsolation['network'];

/**
 * The addresses of the host's metadata services are a container's own. So a container that asks there asks itself, and no packet to
 * any link-local address leaves the bridge. It needs no firewall rule.
 */
export const endpointConfig: Docker.EndpointSettings & { IPAMConfig: { LinkLocalIPs: string[] } } = {
  IPAMConfig: { LinkLocalIPs: ['169.254.169.254', '169.254.170.2', '169.254.170.23'] },
};

/** The engine's address pools hold about so many networks. */
export const maxNetworks = 31;

/** The limit of each call while closing, so that nobody waits long for it. */
const closingMs = 2_000;

/** The networks of a deployment, which its sandboxes share: to make one takes longer than to make a container. */
export class Networks {
  readonly #engine: Engine;
  readonly #ensured = new Map<string, Promise<void>>();
  /** The number of the network that had room last. */
  readonly #current = new Map<Kind, number>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Returns the network for a new sandbox. Throws `Refusal` if the engine can't have it. */
  async choose(kind: Kind): Promise<string> {
    if (kind === 'none') return 'none';
    const name = this.#nameOf(kind, this.#current.get(kind) ?? 1);
    await this.#ensure(kind, name);
    return name;
  }

  /** Returns the network to try next, if those of `full` have no room. One that is gone is made again. Null if there is none. */
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

  /** Moves a container that does not run. */
  async move(container: string, from: string, to: string): Promise<void> {
    const { docker, call } = this.#engine;
    await call(() => docker.getNetwork(from).disconnect({ Container: container, Force: true })).catch((error: unknown) => {
      // A network that is gone, or was never joined, has been left.
      if (statusOf(error) === null) throw error;
    });
    await call(() => docker.getNetwork(to).connect({ Container: container, EndpointConfig: endpointConfig }));
  }

  /** Removes all networks if the deployment has no sandbox left, as the engine has room for few. They are made again when needed. */
  async removeUnused(): Promise<void> {
    const { docker, call } = this.#engine;
    const limits = { limitMs: closingMs };
    const filters = this.#filters();
    const containers = await call((abortSignal) => docker.listContainers({ all: true, limit: 1, filters, abortSignal }), limits);
    if (containers.length > 0) return;
    const found = await call((abortSignal) => docker.listNetworks({ filters, abortSignal }), limits);
    for (const { Id } of found) await call((abortSignal) => docker.getNetwork(Id).remove({ abortSignal }), limits);
  }

  #nameOf(kind: Kind, number: number): string {
    return `skep_${this.#engine.deployment}_${kind}${number === 1 ? '' : `_${number}`}`;
  }

  #filters(): { label: string[] } {
    return { label: [`${labels.deployment}=${this.#engine.deployment}`] };
  }

  #ensure(kind: Kind, name: string): Promise<void> {
    const known = this.#ensured.get(name);
    if (known !== undefined) return known;
    const making = this.#make(kind, name);
    this.#ensured.set(name, making);
    making.catch(() => this.#ensured.delete(name));
    return making;
  }

  async #make(kind: Kind, name: string): Promise<void> {
    const { docker, call, deployment } = this.#engine;
    try {
      await call((abortSignal) => docker.createNetwork({ ...networkConfig(kind, name, deployment), abortSignal }));
    } catch (error) {
      if (/address pool/.test(messageOf(error))) throw new Refusal(reasons.noNetworkAddresses, { cause: error });
      // If two callers create one network at once, the engine refuses the second, by its name check or by its bridge check.
      if (statusOf(error) !== 409 && statusOf(error) !== 403) throw error;
      const found = await call((abortSignal) => docker.listNetworks({ filters: this.#filters(), abortSignal }));
      if (!found.some(({ Name }) => Name === name)) throw new Refusal(reasons.foreignNetwork(name), { cause: error });
    }
  }
}

/** Does the engine report that a network has no room for another container? */
export function isFull(error: unknown): boolean {
  return /exchange full|no available (?:IPv4 )?addresses/i.test(messageOf(error));
}

/** Does the engine report that a network is not there? */
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
