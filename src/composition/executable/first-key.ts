import { isKeyValid } from '../../domain/principal.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ApiKeyStore } from '../../ports/api-key-store.ts';
import type { Random } from '../../ports/random.ts';

/** What the store has for a person who has set no key: one that was made just now, one from before, or none that is valid. */
export type FirstKey = { readonly kind: 'made'; readonly key: string } | { readonly kind: 'kept' | 'none valid' };

/** Makes a key where no key was ever made. */
export async function firstKey(keys: ApiKeyStore, deps: { readonly clock: Clock; readonly random: Random }): Promise<FirstKey> {
  const records = await keys.list();
  if (records.length > 0) return { kind: records.some((record) => isKeyValid(record, deps.clock.now())) ? 'kept' : 'none valid' };
  const { createApiKeys } = await import('../../adapters/auth/api-keys/index.ts');
  const { key } = await createApiKeys({ keys, ...deps }).create({ name: 'first' });
  return { kind: 'made', key };
}
