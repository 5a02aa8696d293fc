import { boundedFigure, type Figure, percentile, spread, timed } from '../figure.ts';
import { openDeployment } from './deployment.ts';
import { createRawEngine } from './raw.ts';

const rounds = 40;

/** Measures freeze and resume against the engine's own pause and unpause. */
export async function* benchRest(): AsyncGenerator<Figure> {
  const raw = createRawEngine();
  await using deployment = await openDeployment();
  const { skep, owner } = deployment;
  const times = { freeze: [] as number[], resume: [] as number[], pause: [] as number[], unpause: [] as number[] };
  try {
    const container = await raw.start();
    const { id } = await deployment.running();
    for (let round = -3; round < rounds; round += 1) {
      const freeze = await timed(() => skep.sandboxes.pause(owner, id, 'freeze'));
      const pause = await timed(() => container.pause());
      const resume = await timed(() => skep.sandboxes.resume(owner, id));
      const unpause = await timed(() => container.unpause());
      if (round < 0) continue;
      times.freeze.push(freeze);
      times.pause.push(pause);
      times.resume.push(resume);
      times.unpause.push(unpause);
    }
  } finally {
    await raw.clear();
  }
  const figure = (name: 'freeze' | 'resume', peer: 'pause' | 'unpause'): Figure =>
    boundedFigure(
      { name: `${name}, answered`, measured: spread(times[name]), reference: `${spread(times[peer])}: raw ${peer}`, note: `${rounds} rounds, in turn` },
      percentile(times[name], 50) / percentile(times[peer], 50),
      { atMost: 1.5 },
    );
  yield figure('freeze', 'pause');
  yield figure('resume', 'unpause');
}
