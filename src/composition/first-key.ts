import type { Clock } from '../ports/clock.ts';
import type { ApiKeyStore } from '../ports/api-key-store.ts';
import type { Random } from '../ports/random.ts';

/** Makes a key where no key was ever made; answers with it, or null where there are keys. */
export async function firstKey(keys: ApiKeyStore, parts: { readonly clock: Clock; readonly random: Random }): Promise<string | null> {
  if ((await keys.list()).length > 0) return null;
  const { createApiKeys } = await import('../adapters/api-keys/index.ts');
  const made = await createApiKeys({ keys, ...parts }).create({ name: 'first' });
  return made.key;
}
