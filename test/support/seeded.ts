/** Random numbers from 0 to below 1 by a seed, so that a failure can be seen again. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A whole number below the bound. */
export function below(random: () => number, bound: number): number {
  return Math.floor(random() * bound);
}

/** A seed for the moments of a test: new in each run, printed, and taken from `SKEP_TEST_SEED` to see a failure again. */
export function printedSeed(moments: string): number {
  const seed = Number(process.env['SKEP_TEST_SEED'] ?? Date.now() % 1_000_000);
  process.stderr.write(`${moments} come from SKEP_TEST_SEED=${seed}\n`);
  return seed;
}
