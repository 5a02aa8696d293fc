import { Failure } from '../../../domain/failure.ts';
import { defaultUser, isUserId } from '../../../domain/principal.ts';
import type { ApiKeyStore } from '../../../ports/api-key-store.ts';
import type { ApiKeys, CreatedApiKey, NewApiKey } from '../../../ports/api-keys.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import { keyDigest } from '../../shared/key-digest.ts';

/** How long a login link works: long enough to copy it to another machine, too short to be found in a log later. */
const loginCodeLifetimeMs = 10 * 60_000;

/** How long a user stays logged in after such a link. */
const loginLifetimeMs = 30 * 24 * 60 * 60_000;

export function createDashboardLogins(
  { keys, clock, random }: { readonly keys: ApiKeyStore; readonly clock: Clock; readonly random: Random },
  createKey: (id: string, asked: NewApiKey) => Promise<CreatedApiKey>,
): Pick<ApiKeys, 'createLoginCode' | 'exchangeLoginCode'> {
  return {
    async createLoginCode({ userId = defaultUser, access = 'full' }) {
      if (!isUserId(userId)) throw new Failure('invalid_request', { problems: [{ argument: 'userId', reason: { code: 'user_id' } }] });
      const code = random.secret();
      const expiresAt = clock.now() + loginCodeLifetimeMs;
      await keys.insertLoginCode({ hash: keyDigest(code), userId, access, expiresAt }, clock.now());
      return { code, expiresAt };
    },
    async exchangeLoginCode(code) {
      const login = await keys.takeLoginCode(keyDigest(code), clock.now());
      if (login === null) throw new Failure('login_code_invalid', {});
      const id = random.id('key');
      return await createKey(id, { name: `dashboard ${id}`, userId: login.userId, access: login.access, expiresInMs: loginLifetimeMs });
    },
  };
}
