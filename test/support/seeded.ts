/** Returns a generator of random numbers in [0, 1). The same seed gives the same numbers, so that a failure can be repeated. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Returns a random integer from 0 to below the bound. */
export function below(random: () => number, bound: number): number {
  return Math.floor(random() * bound);
}

/** Returns and prints a seed, new in each run. Set `SKEP_TEST_SEED` to the printed seed to repeat a failure. */
export function printedSeed(moments: string): number {
  const seed = Number(process.env['SKEP_TEST_SEED'] ?? Date.now() % 1_000_000);
  process.stderr.write(`${moments} come from SKEP_TEST_SEED=${seed}\n`);
  return seed;
}
