import type Docker from 'dockerode';
import { z } from 'zod';
import type { SandboxPort } from '../../../domain/sandbox-spec.ts';
import { absentSandbox, type ExposedUrl, type ObservedSandbox } from '../../../domain/sandbox.ts';
import { createSemaphore } from '../../shared/semaphore.ts';
import type { Connection } from './engine.ts';
import { containerName, labels } from './labels.ts';
import { describeExit, describeRefusal } from './status-details.ts';

type State = ObservedSandbox['state'];

/** Did something outside of it end a container that stopped? */
export type EndedFromOutside = (container: Docker.ContainerInspectInfo) => Promise<boolean>;

interface Facts {
  of(id: string, found: Docker.ContainerInspectInfo | 'foreign' | null): Promise<ObservedSandbox>;
  /** From a list's entry, where that says enough; null where the container has to be inspected. */
  ofListed(listed: Docker.ContainerInfo): ObservedSandbox | null;
}

export function createFacts(urlHost: string, endedFromOutside: EndedFromOutside): Facts {
  return {
    async of(id, found) {
      if (found === null) return absentSandbox(id);
      if (found === 'foreign') return absentSandbox(id, 'the engine has a container of its name that is not of this deployment; remove or rename that');
      const state = stateOf(found.State.Status, found.State.Error);
      switch (state) {
        case 'created':
          return { id, state, exposedUrls: [], detail: null, endedFromOutside: false };
        case 'absent':
        case 'stopped':
          return await ended(id, found, endedFromOutside);
        case 'running':
        case 'frozen': {
          const publications = Object.entries(found.NetworkSettings.Ports ?? {}).flatMap(([port, bindings]) =>
            (bindings ?? []).slice(0, 1).map(({ HostPort }) => ({ port: Number.parseInt(port, 10), hostPort: Number(HostPort) })),
          );
          return { id, state, exposedUrls: exposedUrls(found.Config.Labels, publications, urlHost), detail: null, endedFromOutside: false };
        }
      }
    },
    ofListed({ State, Labels, Ports }) {
      const state = stateOf(State, '');
      if (state !== 'running' && state !== 'frozen') return null;
      const publications = Ports.flatMap(({ PrivatePort, PublicPort }) => (PublicPort ? [{ port: PrivatePort, hostPort: PublicPort }] : []));
      return { id: Labels[labels.sandbox] ?? '', state, exposedUrls: exposedUrls(Labels, publications, urlHost), detail: null, endedFromOutside: false };
    },
  };
}

/** The engine calls one that it could not start `created`, with an error. */
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

async function ended(id: string, found: Docker.ContainerInspectInfo, endedFromOutside: EndedFromOutside): Promise<ObservedSandbox> {
  const { Status, Error: error, ExitCode, OOMKilled } = found.State;
  const stopped = (detail: string, outside: boolean): ObservedSandbox => ({ id, state: 'stopped', exposedUrls: [], detail, endedFromOutside: outside });
  if (Status === 'created') return stopped(describeRefusal(error), false);
  // Skep does not ask for that before the sandbox is deleted, so somebody else has.
  if (Status === 'removing' || Status === 'dead') return stopped('the engine is removing it, or failed to', true);
  if (OOMKilled) return stopped(`ran out of its memory and ${describeExit(ExitCode, found.Path)}`, false);
  const outside = await endedFromOutside(found);
  return stopped(outside ? `was ended from outside and ${describeExit(ExitCode, found.Path)}` : describeExit(ExitCode, found.Path), outside);
}

const Ports = z.array(z.object({ name: z.string(), port: z.number() }));

/** A port of a container, and the one of the host that leads there. */
interface Publication {
  readonly port: number;
  readonly hostPort: number;
}

/** Where the ports of the spec, which a container's label holds, can be reached. */
function exposedUrls(found: Readonly<Record<string, string>>, publications: readonly Publication[], urlHost: string): ExposedUrl[] {
  const host = urlHost.includes(':') ? `[${urlHost}]` : urlHost;
  return portsOf(found).flatMap(({ name, port }) => {
    const hostPort = publications.find((one) => one.port === port)?.hostPort;
    return hostPort === undefined ? [] : [{ name, url: `http://${host}:${hostPort}`, port }];
  });
}

function portsOf(found: Readonly<Record<string, string>>): readonly SandboxPort[] {
  try {
    return Ports.parse(JSON.parse(found[labels.ports] ?? '[]'));
  } catch {
    return [];
  }
}

const inspectionsAtOnce = 8;
const never = new AbortController().signal;

/** The containers of the deployment's sandboxes. A container that was made from a copy of one has its labels, and another name. */
export async function listContainers({ docker, deployment, call }: Connection): Promise<Docker.ContainerInfo[]> {
  const found = await call((abortSignal) => docker.listContainers({ all: true, filters: { label: [`${labels.deployment}=${deployment}`] }, abortSignal }));
  return found.filter(({ Names, Labels }) => Names.includes(`/${containerName(deployment, Labels[labels.sandbox] ?? '')}`));
}

/** The fact of every sandbox, in the order of their ids. */
export async function listFacts(connection: Connection, facts: Facts): Promise<ObservedSandbox[]> {
  const slots = createSemaphore(inspectionsAtOnce);
  const found = await Promise.all(
    (await listContainers(connection)).map(async (listed) => {
      const id = listed.Labels[labels.sandbox] ?? '';
      return facts.ofListed(listed) ?? slots.use(never, async () => facts.of(id, await connection.find(id)));
    }),
  );
  return found.filter(({ state }) => state !== 'absent').toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
