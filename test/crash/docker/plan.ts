import { below } from '../../support/seeded.ts';

/** One kill, and when it comes. */
export interface Kill {
  readonly target: 'server' | 'engine' | 'both';
  /** After so many answers of the server's life, or so many more since the last kill... */
  readonly answers: number;
  /** ...and so many milliseconds, so that it strikes within a request too. */
  readonly laterMs: number;
  /** How many answers callers get while only the engine is away. */
  readonly answersWhileAway: number;
  /** Of both: is the server back while the engine is away still? */
  readonly serverFirst: boolean;
}

export type Numbers = Readonly<Record<Kill['target'], number>>;

/** So many kills of each, in random order at random moments. The same random numbers make the same plan. */
export function planKills(numbers: Numbers, random: () => number): readonly Kill[] {
  const targets = (['server', 'engine', 'both'] as const).flatMap((target) => Array.from({ length: numbers[target] }, () => target));
  return targets
    .map((target) => ({ target, order: random() }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ target }) => ({
      target,
      // Some find a server that has only just begun to put right what the last kill left.
      answers: random() < 0.3 ? 0 : below(random, 15),
      laterMs: below(random, 500),
      answersWhileAway: below(random, 15),
      serverFirst: random() < 0.5,
    }));
}
