import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ContractCase, runAndClose } from './contract.ts';

/**
 * Turns cases that need a stage into contract cases. Each case gets its own harness and temporary folder, which are removed at the end. If
 * the harness can't be closed, the case fails.
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
        await runAndClose(async () => run(stageOf(harness, folder)), () => harness.close());
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
  }));
}
