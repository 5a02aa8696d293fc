import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ContractCase } from './contract.ts';

/**
 * Turns cases that need a stage into contract cases, each with a harness and a temporary folder of its own, both of which are
 * gone in the end.
 */
export function casesWithFolder<H extends { readonly close: () => Promise<void> }, S>(
  createHarness: () => Promise<H>,
  stageOf: (harness: H, folder: string) => S,
  cases: readonly (readonly [name: string, run: (stage: S) => Promise<void>])[],
): ContractCase[] {
  return cases.map(([name, run]) => ({
    name,
    run: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'skep-contract-'));
      const harness = await createHarness();
      try {
        await run(stageOf(harness, folder));
      } finally {
        await harness.close();
        await rm(folder, { recursive: true, force: true });
      }
    },
  }));
}
