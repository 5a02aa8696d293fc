import type { Auth } from '../../../ports/auth.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Store } from '../../../ports/store.ts';
import type { SkepOptions } from '../../options.ts';

/** Opens the authentication that the options choose. */
export async function openAuth({ auth = { kind: 'api-keys' } }: SkepOptions, store: Store, clock: Clock): Promise<Auth> {
  if ('authenticate' in auth) return auth;
  const { createApiKeyAuth } = await import('../../../adapters/auth/api-keys/index.ts');
  return createApiKeyAuth({ keys: store.apiKeys, clock, ...(auth.staticKey !== undefined && { staticKey: auth.staticKey }) });
}
