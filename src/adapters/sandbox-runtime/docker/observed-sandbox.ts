import type Docker from 'dockerode';
import pLimit from 'p-limit';
import { z } from 'zod';
import type { Reason } from '../../../domain/reason.ts';
import { absentSandbox, type ObservedSandbox } from '../../../domain/sandbox.ts';
import { type Engine, parseJson } from './engine.ts';
import { endedFromOutside, type RunHistory } from './exit-causes.ts';
import { containerName, labels } from './labels.ts';
import { reasons } from './status-reasons.ts';

type State = ObservedSandbox['state'];

const inspectionsAtOnce = 8;

/** The ports of the spec, which a label of the container holds. */
const Ports = z.array(z.object({ name: z.string(), port: z.number() }));

/** Reads the state of sandboxes from what the engine reports of their containers. */
export class Observer {
  readonly #engine: Engine;
  readonly #runs: RunHistory;
  /** The host in exposed URLs. */
  readonly #urlHost: string;

  constructor(engine: Engine, runs: RunHistory, urlHost: string) {
    this.#engine = engine;
    this.#runs = runs;
    this.#urlHost = urlHost.includes(':') ? `[${urlHost}]` : urlHost;
  }

  async observe(id: string, found: Docker.ContainerInspectInfo | 'foreign' | null): Promise<ObservedSandbox> {
    if (found === null) return absentSandbox(id);
    if (found === 'foreign') return absentSandbox(id, reasons.foreignContainer);
    const state = stateOf(found.State.Status, found.State.Error);
    if (state === 'stopped') return await this.#stopped(id, found);
    const bound = state === 'created' ? {} : (found.NetworkSettings.Ports ?? {});
    const hostPorts = Object.entries(bound).flatMap(([port, bindings]) =>
      (bindings ?? []).slice(0, 1).map(({ HostPort }): [number, number] => [Number.parseInt(port, 10), Number(HostPort)]),
    );
    return this.#unended(id, state, found.Config.Labels, hostPorts);
  }

  /** Returns every sandbox of the deployment, in the order of their ids. */
  async list(): Promise<ObservedSandbox[]> {
    const limit = pLimit(inspectionsAtOnce);
    const found = await Promise.all(
      (await listContainers(this.#engine)).map(async (listed) => {
        const id = listed.Labels[labels.sandbox] ?? '';
        return this.#observeListed(id, listed) ?? limit(async () => this.observe(id, await this.#engine.find(id)));
      }),
    );
    return found.filter(({ state }) => state !== 'absent').toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Returns null if the entry of the list does not say enough, and the container has to be inspected. */
  #observeListed(id: string, { State, Labels, Ports }: Docker.ContainerInfo): ObservedSandbox | null {
    const state = stateOf(State, '');
    if (state !== 'running' && state !== 'frozen') return null;
    const hostPorts = Ports.flatMap(({ PrivatePort, PublicPort }): [number, number][] => (PublicPort ? [[PrivatePort, PublicPort]] : []));
    return this.#unended(id, state, Labels, hostPorts);
  }

  async #stopped(id: string, found: Docker.ContainerInspectInfo): Promise<ObservedSandbox> {
    const { Status, Error: error, ExitCode, OOMKilled } = found.State;
    const stopped = (reason: Reason, endedFromOutside = false): ObservedSandbox =>
      ({ id, state: 'stopped', exposedUrls: [], reason, endedFromOutside });
    if (Status === 'created') return stopped(reasons.notRunnable(error));
    // Skep does not ask for that before the sandbox is deleted, so somebody else has.
    if (Status === 'removing' || Status === 'dead') return stopped(reasons.beingRemoved, true);
    if (OOMKilled) return stopped(reasons.outOfMemory(ExitCode));
    return stopped(reasons.exited(ExitCode, found.Path), await endedFromOutside(this.#engine, this.#runs, found));
  }

  /** `hostPorts` are the ports of the container, each with the port of the host that leads to it. */
  #unended(id: string, state: State, found: Readonly<Record<string, string>>, hostPorts: [number, number][]): ObservedSandbox {
    const hostPortOf = new Map(hostPorts);
    const exposedUrls = (parseJson(Ports, found[labels.ports] ?? '[]') ?? []).flatMap(({ name, port }) => {
      const hostPort = hostPortOf.get(port);
      return hostPort === undefined ? [] : [{ name, url: `http://${this.#urlHost}:${hostPort}`, port }];
    });
    return { id, state, exposedUrls, reason: null, endedFromOutside: false };
  }
}

/** The engine calls a container that it could not start `created`, with an error. */
export function stateOf(status: string, error: string): State {
  switch (status) {
    case 'created':
      return error === '' ? 'created' : 'stopped';
    case 'running':
    case 'restarting':
      return 'running';
    case 'paused':
      return 'frozen';
    default:
      return 'stopped';
  }
}

/** Returns the containers of the deployment's sandboxes. A container made from a copy of one has its labels, and another name. */
export async function listContainers({ docker, deployment, call }: Engine): Promise<Docker.ContainerInfo[]> {
  const filters = { label: [`${labels.deployment}=${deployment}`] };
  const found = await call((abortSignal) => docker.listContainers({ all: true, filters, abortSignal }));
  return found.filter(({ Names, Labels }) => Names.includes(`/${containerName(deployment, Labels[labels.sandbox] ?? '')}`));
}
