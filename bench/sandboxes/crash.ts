import type Docker from 'dockerode';
import { setTimeout as pause } from 'node:timers/promises';
import { boundedFigure, formatFigures, type Figure } from '../figure.ts';
import { openDeployment } from './deployment.ts';
import { percentile, spread } from './distribution.ts';
import { createRawEngine } from './raw.ts';

const rounds = 15;
const seenWithinMs = 200;

/** From the death of a sandbox's program to the status that says so. */
export async function benchCrash(): Promise<Figure[]> {
  await using deployment = await openDeployment();
  const { skep, owner } = deployment;
  const { docker } = createRawEngine();
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const { id } = await deployment.running();
    const exec = await (await containerOf(docker, id)).exec({ Cmd: ['sh', '-c', 'kill -9 $(pidof httpd)'] });
    const begun = performance.now();
    await exec.start({ Detach: true });
    while ((await skep.sandboxes.get(owner, id)).status === 'RUNNING') await pause(1);
    times.push(performance.now() - begun);
    await skep.sandboxes.delete(owner, id);
  }
  const texts = { name: 'a crash inside, until it is seen', measured: spread(times), reference: `${seenWithinMs} ms`, note: `${rounds} rounds; the command that kills included` };
  return [boundedFigure(texts, percentile(times, 95) / seenWithinMs, { atMost: 1 })];
}

async function containerOf(docker: Docker, id: string): Promise<Docker.Container> {
  const [found] = await docker.listContainers({ filters: { label: [`skep.sandbox=${id}`] } });
  if (found === undefined) throw new Error(`${id} has no container`);
  return docker.getContainer(found.Id);
}

if (import.meta.main) process.stdout.write(formatFigures(await benchCrash()));
