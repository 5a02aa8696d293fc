import { boundedFigure, type Figure, inMs, percentile, spread, timed } from '../figure.ts';
import { openDeployment } from './deployment.ts';

const rounds = 15;
const burst = 50;

/** Measures starts from a pool against cold starts: in sequence, and in a burst. */
export async function* benchPool(): AsyncGenerator<Figure> {
  const [cold, coldBurst] = await withPool(0);
  const [pooled, pooledBurst] = await withPool(burst);
  yield boundedFigure(
    { name: 'start to RUNNING, from the pool', measured: spread(pooled), reference: `${spread(cold)}: cold`, note: `${rounds} rounds` },
    percentile(pooled, 50) / percentile(cold, 50),
    { atMost: 0.1 },
  );
  yield boundedFigure(
    { name: `a burst of ${burst}, all RUNNING, from the pool`, measured: inMs(pooledBurst), reference: `${inMs(coldBurst)}: cold` },
    pooledBurst / coldBurst,
    { atMost: 0.05 },
  );
}

async function withPool(size: number): Promise<[readonly number[], number]> {
  await using deployment = await openDeployment(size);
  const { skep, owner } = deployment;
  const times: number[] = [];
  await deployment.poolFull(size);
  for (let round = 0; round < rounds; round += 1) {
    let id = '';
    times.push(await timed(async () => ({ id } = await deployment.running())));
    await skep.sandboxes.delete(owner, id);
    // Only the start from the pool is measured, not the refill.
    await deployment.poolFull(size);
  }
  const burstMs = await timed(() => Promise.all(Array.from({ length: burst }, () => deployment.running())));
  return [times, burstMs];
}
