import type { ReadinessProbe } from '../../../ports/readiness-probe.ts';
import type { SkepOptions } from '../../options.ts';

export async function openProbe({ probe }: SkepOptions): Promise<ReadinessProbe> {
  if (probe !== undefined) return probe;
  const { createNetworkProbe } = await import('../../../adapters/readiness-probe/network/index.ts');
  return createNetworkProbe();
}
