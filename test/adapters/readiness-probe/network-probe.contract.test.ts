import { describe, test } from 'vitest';
import { createNetworkProbe } from '../../../src/adapters/readiness-probe/network-probe.ts';
import { readinessProbeContract, type ReadinessProbeHarness } from '../../contracts/readiness-probe.ts';
import { createPlace } from './place.ts';

async function createHarness(): Promise<ReadinessProbeHarness> {
  return { ...(await createPlace()), probe: createNetworkProbe({ attemptMs: 30 }) };
}

describe('Readiness probe contract: network-probe', () => {
  for (const contractCase of readinessProbeContract(createHarness)) test(contractCase.name, () => contractCase.run());
});
