import { Failure } from '../../../domain/failure.ts';
import { isKeyValid, type Principal } from '../../../domain/principal.ts';
import type { ApiKeyStore } from '../../../ports/api-key-store.ts';
import type { Auth } from '../../../ports/auth.ts';
import type { Clock } from '../../../ports/clock.ts';
import { digestOf, sameDigest } from './digest.ts';
import { defaultUser } from './keys.ts';

export interface ApiKeyAuthOptions {
  /** A key that is valid without being in the store. One that is in the store is what its record says. */
  readonly staticKey?: string;
  readonly keys: ApiKeyStore;
  readonly clock: Clock;
}

/** No key is longer; whatever is, isn't worth a digest. */
const maxLength = 1024;

const staticPrincipal: Principal = { userId: defaultUser, keyName: 'SKEP_API_KEY', access: 'full' };

/** Knows callers by an API key: the static one, or one of the store's. A key that is revoked is refused from then on. */
export function createApiKeyAuth({ staticKey, keys, clock }: ApiKeyAuthOptions): Auth {
  const staticDigest = staticKey === undefined || staticKey === '' ? null : digestOf(staticKey);

  return {
    description: staticDigest === null ? 'keys of the store' : 'the key in SKEP_API_KEY and keys of the store',
    async authenticate(credential) {
      if (credential === null || credential === '' || credential.length > maxLength) throw new Failure('unauthorized', {});
      const digest = digestOf(credential);
      // A key of the store stays what it is there, also where somebody made it the static one: revoked is revoked.
      const record = await keys.findByHash(digest);
      if (record === null && staticDigest !== null && sameDigest(digest, staticDigest)) return staticPrincipal;
      if (record === null || !sameDigest(record.hash, digest) || !isKeyValid(record, clock.now())) {
        throw new Failure('unauthorized', {});
      }
      return { userId: record.userId, keyName: record.name, access: record.access };
    },
  };
}
