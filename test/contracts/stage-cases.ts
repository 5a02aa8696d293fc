import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ContractCase } from './contract.ts';

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
      const failures = [await failureOf(() => run(stageOf(harness, folder))), await failureOf(() => closeHarness(harness))];
      await rm(folder, { recursive: true, force: true });
      const [first, second] = failures.filter((failure) => failure !== null);
      if (second !== undefined) throw new AggregateError([first, second], `${messageOf(first)}; and ${messageOf(second)}`);
      if (first !== undefined) throw first;
    },
  }));
}

async function closeHarness({ close }: { readonly close: () => Promise<void> }): Promise<void> {
  try {
    await close();
  } catch (error) {
    throw new Error(`the harness can't be closed: ${messageOf(error)}`, { cause: error });
  }
}

async function failureOf(work: () => Promise<void>): Promise<unknown> {
  return await work().then(() => null, (error: unknown) => error ?? new Error('rejected without a reason'));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Runs assertions that depend on a trait of the harness. A failure names the trait, because its value may be wrong. */
export async function decidedBy<T extends object, K extends keyof T & string>(
  traits: T,
  trait: K,
  assertions: (value: T[K]) => Promise<void> | void,
): Promise<void> {
  try {
    await assertions(traits[trait]);
  } catch (error) {
    if (error instanceof Error) error.message = `(decided by the trait ${trait}: ${String(traits[trait])}) ${error.message}`;
    throw error;
  }
}
