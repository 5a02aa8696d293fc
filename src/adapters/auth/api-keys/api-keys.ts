import { timingSafeEqual } from 'node:crypto';
import { Failure } from '../../../domain/failure.ts';
import { defaultUser, isUserId, type Principal } from '../../../domain/principal.ts';
import { type ApiKeyRecord, isKeyValid, KeyRefusal, keyStateOf } from '../../../domain/api-key.ts';
import { explained, type Reason } from '../../../domain/reason.ts';
import { isRepositoryPattern } from '../../../domain/repository-name.ts';
import type { ApiKeys, CreatedApiKey, NewApiKey } from '../../../ports/api-keys.ts';
import type { ApiKeyStore } from '../../../ports/api-key-store.ts';
import type { Auth } from '../../../ports/auth.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import { keyDigest } from '../../shared/key-digest.ts';
import { createDashboardLogins } from './dashboard-logins.ts';

const staticPrincipal: Principal = { userId: defaultUser, keyName: 'SKEP_API_KEY', access: 'full' };

export interface ApiKeyAuthOptions {
  /** A key that is valid without a record in the store. If the store has a record of it, the record counts. */
  readonly staticKey?: string;
  readonly keys: ApiKeyStore;
  readonly clock: Clock;
  /** If it is missing, the adapter can't create keys. */
  readonly random?: Random;
}

/** Authenticates callers by the static key or a key in the store. A revoked key is refused from its next request on. */
export function createApiKeyAuth({ staticKey, keys, clock, random }: ApiKeyAuthOptions): Auth {
  const staticDigest = staticKey === undefined || staticKey === '' ? null : keyDigest(staticKey);
  const isStatic = (digest: string): boolean =>
    staticDigest !== null && digest.length === staticDigest.length && timingSafeEqual(Buffer.from(digest), Buffer.from(staticDigest));
  const authenticateDigest = async (digest: string): Promise<Principal> => {
    // The record in the store comes first, so a revoked key stays revoked even if it is also the static key.
    const record = await keys.findByHash(digest);
    if (record === null && isStatic(digest)) return staticPrincipal;
    if (record === null) throw new Failure('unauthorized', {});
    const state = keyStateOf(record, clock.now());
    if (state !== 'valid') throw new Failure('unauthorized', {}, { cause: new KeyRefusal(record, state) });
    const { userId, name: keyName, access, repositories, expiresAt } = record;
    return { userId, keyName, access, ...(repositories !== null && { repositories }), ...(expiresAt !== null && { expiresAt }) };
  };
  return {
    description: staticDigest === null ? 'keys of the store' : 'the key in SKEP_API_KEY and keys of the store',
    async authenticate(credential) {
      if (credential === null) throw new Failure('unauthorized', {});
      return await authenticateDigest(keyDigest(credential));
    },
    authenticateDigest,
    async digestsOf(userId) {
      const records = await keys.list();
      const isOf = (key: ApiKeyRecord): boolean => (key.userId === userId || key.access === 'admin') && isKeyValid(key, clock.now());
      const staticKeyApplies = staticDigest !== null && userId === defaultUser && !records.some(({ hash }) => hash === staticDigest);
      return [...records.filter(isOf).map(({ hash }) => hash), ...(staticKeyApplies ? [staticDigest] : [])];
    },
    ...(random !== undefined && { keys: createApiKeys({ keys, clock, random }) }),
  };
}

export function createApiKeys(deps: { readonly keys: ApiKeyStore; readonly clock: Clock; readonly random: Random }): ApiKeys {
  const { keys, clock, random } = deps;

  const make = async (id: string, asked: NewApiKey): Promise<CreatedApiKey> => {
    const { name, userId = defaultUser, access = 'full', repositories = null, format = 'skep', expiresInMs } = asked;
    requireValidKey({ name, userId, repositories, expiresInMs });
    const createdAt = clock.now();
    const expiresAt = expiresInMs === undefined ? null : createdAt + expiresInMs;
    const secret = random.secret();
    const key = format === 'e2b' ? `e2b_${Buffer.from(secret).toString('hex')}` : `skep_${secret}`;
    const record = { id, name, userId, access, repositories, hash: keyDigest(key), createdAt, expiresAt, revokedAt: null };
    if (!(await keys.insert(record))) throw new Failure('key_name_taken', { name });
    return { key, record };
  };

  return {
    create: (key) => make(random.id('key'), key),
    list: () => keys.list(),
    revoke: (idOrName) => keys.revoke(idOrName, clock.now()),
    ...createDashboardLogins(deps, make),
  };
}

function invalid(argument: keyof NewApiKey, reason: Reason): Failure {
  return new Failure('invalid_request', { problems: [{ argument, reason }] });
}

const longestLifetimeMs = 100 * 365 * 24 * 60 * 60 * 1000;

type KeyFields = Required<Pick<NewApiKey, 'name' | 'userId' | 'repositories'>> & { readonly expiresInMs: number | undefined };

/** Throws `invalid_request` if a value is not valid. */
function requireValidKey({ name, userId, repositories, expiresInMs }: KeyFields): void {
  if (name.trim() === '' || name.length > 100 || /\p{Cc}/u.test(name)) {
    throw invalid('name', explained('must have 1 to 100 characters, none of them a control character'));
  }
  if (!isUserId(userId)) throw invalid('userId', { code: 'user_id' });
  const wrong = repositories?.find((pattern) => !isRepositoryPattern(pattern));
  if (wrong !== undefined) {
    const form = 'for example acme/shop, acme/* or group/**, with ** at the end only, and without .git';
    throw invalid('repositories', explained(`must be repository patterns, ${form}; ${JSON.stringify(wrong)} is none`));
  }
  if (repositories !== null && userId === defaultUser) {
    const why = 'it sees the conversations and sandboxes of its user, and most keys are of the default one';
    throw invalid('userId', explained(`must be another one than default if the key is limited to repositories, because ${why}`));
  }
  if (expiresInMs !== undefined && (!Number.isInteger(expiresInMs) || expiresInMs < 1 || expiresInMs > longestLifetimeMs)) {
    throw invalid('expiresInMs', explained('must be more than 0 and at most 100 years'));
  }
}
