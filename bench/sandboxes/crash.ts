import { setTimeout as pause } from 'node:timers/promises';
import { boundedFigure, type Figure, percentile, spread } from '../figure.ts';
import { openDeployment } from './deployment.ts';
import { image, port, ready } from './raw.ts';

const rounds = 15;
const seenWithinMs = 200;

/** A server that kills itself on request. */
const mortal = `mkdir -p /tmp/site/cgi-bin && cd /tmp/site && echo ready >passwd &&
printf '#!/bin/sh\\nkill -9 $(pidof httpd)\\n' >cgi-bin/crash && chmod +x cgi-bin/crash && exec httpd -f -p ${port} -h /tmp/site`;

/** Measures the time from the request that kills a sandbox's program to the new status. */
export async function* benchCrash(): AsyncGenerator<Figure> {
  const spec = { id: 'mortal', image, command: ['sh', '-c', mortal], ports: [{ name: 'WEB', port }], ready };
  await using deployment = await openDeployment(0, { specs: [spec] });
  const { skep, owner } = deployment;
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const { id, exposedUrls } = await deployment.running();
    const begun = performance.now();
    // The request gets no response.
    void fetch(`${exposedUrls[0]?.url}/cgi-bin/crash`).catch(() => {});
    const deadline = begun + 30_000;
    while ((await skep.sandboxes.get(owner, id)).status === 'RUNNING' && performance.now() < deadline) await pause(1);
    times.push(performance.now() - begun);
    const { status } = await skep.sandboxes.get(owner, id);
    if (status !== 'ERROR') throw new Error(`${id} is ${status}`);
    await skep.sandboxes.delete(owner, id);
  }
  const texts = { name: 'a crash inside, until it is seen', measured: spread(times), reference: `${seenWithinMs} ms`, note: `${rounds} rounds; the request that kills included` };
  yield boundedFigure(texts, percentile(times, 95) / seenWithinMs, { atMost: 1 });
}
