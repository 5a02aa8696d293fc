import { expect } from 'vitest';
import type { GitProviderHarness } from '../contracts/git-provider-harness.ts';
import { gitProviderContract } from '../contracts/git-provider.ts';

/** Returns the failure of the only case whose name begins with `name`. */
export async function failureOfCase(name: string, createHarness: () => Promise<GitProviderHarness>): Promise<unknown> {
  const cases = gitProviderContract(createHarness).filter((each) => each.name.startsWith(name));
  expect(cases.map((each) => each.name)).toHaveLength(1);
  return await cases[0]?.run().then(() => null, (error: unknown) => error);
}
