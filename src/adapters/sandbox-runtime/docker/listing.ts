import type Docker from 'dockerode';
import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import { createSemaphore } from '../../shared/semaphore.ts';
import type { Connection } from './connect.ts';
import type { Facts } from './facts/facts.ts';
import { containerName, labels } from './identity.ts';

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
