import { describe, test } from 'vitest';
import { sandboxExecutionsContract } from '../../contracts/sandbox-executions.ts';
import { createExecutionsHarness, executionsTraits } from './contract-harness.ts';

describe('Executions contract: in memory', () => {
  for (const { name, run } of sandboxExecutionsContract(() => createExecutionsHarness(), executionsTraits)) test(name, run);
});
