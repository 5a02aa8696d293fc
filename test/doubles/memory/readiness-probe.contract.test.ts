import { describe, test } from 'vitest';
import { createMemoryProbe } from './index.ts';
import { readinessProbeContract, type ReadinessProbeHarness } from '../../contracts/readiness-probe.ts';

async function createHarness(): Promise<ReadinessProbeHarness> {
  const probe = createMemoryProbe();
  const url = 'http://sb-1.invalid:8000';
  return {
    probe,
    url,
    answer: async (answer) => probe.answer(url, answer),
    asked: async () => {},
    close: async () => {},
  };
}

describe('Readiness probe contract: in memory', () => {
  for (const contractCase of readinessProbeContract(createHarness)) test(contractCase.name, () => contractCase.run());
});
