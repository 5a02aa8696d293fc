import type Docker from 'dockerode';
import { once } from 'node:events';
import { get } from 'node:http';
import { createProxyServer } from '../../src/adapters/proxy/index.ts';
import { boundedFigure, type Figure, percentile, spread, timed } from '../figure.ts';
import { openDeployment } from '../sandboxes/deployment.ts';
import { createRawEngine, port } from '../sandboxes/raw.ts';

const rounds = 30;

/** Measures the time to the first byte of a frozen sandbox through the proxy, against the engine's own unpause. */
export async function* benchWake(): AsyncGenerator<Figure> {
  const raw = createRawEngine();
  await using deployment = await openDeployment(0, {}, { wake_on_access: 'freeze' });
  const { skep, owner } = deployment;
  const proxy = await createProxyServer(skep, { port: 0 });
  const times = { firstByte: [] as number[], unpause: [] as number[] };
  try {
    const container: Docker.Container = await raw.start();
    const { id, sessionApiKey } = await deployment.running();
    const firstByte = async (): Promise<void> => {
      const headers = { 'X-Session-API-Key': sessionApiKey };
      const [response] = await once(get(`${proxy.url}/${id}/${port}/passwd`, { agent: false, headers }), 'response');
      if (response.statusCode !== 200) throw new Error(`the proxy returned ${response.statusCode}`);
      await once(response, 'data');
      response.destroy();
    };
    for (let round = -3; round < rounds; round += 1) {
      await skep.sandboxes.pause(owner, id, 'freeze');
      await container.pause();
      const waking = await timed(firstByte);
      const unpause = await timed(() => container.unpause());
      if (round < 0) continue;
      times.firstByte.push(waking);
      times.unpause.push(unpause);
    }
  } finally {
    await proxy.close();
    await raw.clear();
  }
  yield boundedFigure(
    { name: 'first byte from a frozen sandbox', measured: spread(times.firstByte), reference: `${spread(times.unpause)}: raw unpause`, note: `${rounds} rounds, in turn` },
    percentile(times.firstByte, 50) / percentile(times.unpause, 50), { atMost: 4 },
  );
}
