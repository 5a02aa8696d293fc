import { boundedFigure, type Figure, timed } from '../figure.ts';
import { openDeployment } from './deployment.ts';
import { createRawEngine, type RawEngine } from './raw.ts';

const starts = 50;
const concurrencies = [2, 4, 8, 16];

/** Measures many cold starts at once against the best result of the raw API at any concurrency. */
export async function* benchThroughput(): AsyncGenerator<Figure> {
  const raw = createRawEngine();
  let best = { perSecond: 0, at: 0 };
  try {
    await raw.start();
    for (const at of concurrencies) {
      const perSecond = (starts / (await timed(() => rawStarts(raw, at)))) * 1000;
      if (perSecond > best.perSecond) best = { perSecond, at };
    }
  } finally {
    await raw.clear();
  }
  await using deployment = await openDeployment();
  await deployment.running();
  const ms = await timed(() => Promise.all(Array.from({ length: starts }, () => deployment.running())));
  const perSecond = (starts / ms) * 1000;
  yield boundedFigure(
    {
      name: `${starts} cold starts at once`,
      measured: `${perSecond.toFixed(1)} a second`,
      reference: `${best.perSecond.toFixed(1)} a second: the raw API, ${best.at} at a time`,
      note: `the best of ${concurrencies.join(', ')} at a time`,
    },
    perSecond / best.perSecond,
    { atLeast: 0.9 },
  );
}

async function rawStarts(raw: RawEngine, atOnce: number): Promise<void> {
  let left = starts;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await raw.start();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
