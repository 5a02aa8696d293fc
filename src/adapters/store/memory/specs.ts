import type { SpecStore } from '../../../ports/spec-store.ts';
import { type StoreState, whileOpen } from './state.ts';

export function createMemorySpecs(state: StoreState): SpecStore {
  const known = new Map<string, { readonly fingerprint: string; readonly firstSeen: number }>();

  return {
    firstSeen: (specId, fingerprint, now) =>
      whileOpen(state, () => {
        const spec = known.get(specId);
        if (spec?.fingerprint === fingerprint) return spec.firstSeen;
        known.set(specId, { fingerprint, firstSeen: now });
        return now;
      }),
  };
}
