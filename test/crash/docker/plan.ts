import { below } from '../../support/seeded.ts';

/** A kill and its time. */
export interface Kill {
  readonly target: 'server' | 'engine' | 'both';
  /** The kill comes after this many responses since the start of the life or the last kill... */
  readonly answers: number;
  /** ...and this many milliseconds, so that it may come during a request. */
  readonly laterMs: number;
  /** The number of responses while only the engine is down. */
  readonly answersWhileAway: number;
  /** For `both`: does the server start before the engine? */
  readonly serverFirst: boolean;
}

export type Numbers = Readonly<Record<Kill['target'], number>>;

/** Returns this many kills of each target, in random order at random times. The same random numbers give the same plan. */
export function planKills(numbers: Numbers, random: () => number): readonly Kill[] {
  const targets = (['server', 'engine', 'both'] as const).flatMap((target) => Array.from({ length: numbers[target] }, () => target));
  return targets
    .map((target) => ({ target, order: random() }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ target }) => ({
      target,
      // Some kills come while the server still repairs the effects of the last kill.
      answers: random() < 0.3 ? 0 : below(random, 15),
      laterMs: below(random, 500),
      answersWhileAway: below(random, 15),
      serverFirst: random() < 0.5,
    }));
}
