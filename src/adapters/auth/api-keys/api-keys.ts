import { hash, timingSafeEqual } from 'node:crypto';
import { Failure } from '../../../domain/failure.ts';
import {
  type ApiKeyRecord, isKeyValid, isRepositoryPattern, isUserId, type KeyAccess, type KeyFormat, type Principal,
} from '../../../domain/principal.ts';
import type { ApiKeyStore } from '../../../ports/api-key-store.ts';
import type { Auth } from '../../../ports/auth.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';

/** The user of the static key, and of every key that is made for nobody in particular: what one made, the next one sees. */
const defaultUser = 'default';

const staticPrincipal: Principal = { userId: defaultUser, keyName: 'SKEP_API_KEY', access: 'full' };

export interface ApiKeyAuthOptions {
  /** A key that is valid without being in the store. One that is in the store is what its record says. */
  readonly staticKey?: string;
  readonly keys: ApiKeyStore;
  readonly clock: Clock;
}

/** Knows callers by an API key: the static one, or one of the store's. A key that is revoked is refused from then on. */
export function createApiKeyAuth({ staticKey, keys, clock }: ApiKeyAuthOptions): Auth {
  const staticDigest = staticKey === undefined || staticKey === '' ? null : digestOf(staticKey);
  const isStatic = (digest: string): boolean =>
    staticDigest !== null && digest.length === staticDigest.length && timingSafeEqual(Buffer.from(digest), Buffer.from(staticDigest));
  const authenticateDigest = async (digest: string): Promise<Principal> => {
    // A key of the store stays what it is there, also where somebody made it the static one: revoked is revoked.
    const record = await keys.findByHash(digest);
    if (record === null && isStatic(digest)) return staticPrincipal;
    if (record === null || !isKeyValid(record, clock.now())) throw new Failure('unauthorized', {});
    const { userId, name: keyName, access, repositories } = record;
    return { userId, keyName, access, ...(repositories !== null && { repositories }) };
  };
  return {
    description: staticDigest === null ? 'keys of the store' : 'the key in SKEP_API_KEY and keys of the store',
    async authenticate(credential) {
      if (credential === null) throw new Failure('unauthorized', {});
      return await authenticateDigest(digestOf(credential));
    },
    authenticateDigest,
    async digestsOf(userId) {
      const records = await keys.list();
      const isOf = (key: ApiKeyRecord): boolean => (key.userId === userId || key.access === 'admin') && isKeyValid(key, clock.now());
      const isFree = staticDigest !== null && userId === defaultUser && !records.some(({ hash }) => hash === staticDigest);
      return [...records.filter(isOf).map(({ hash }) => hash), ...(isFree ? [staticDigest] : [])];
    },
  };
}

/** SHA-256 of a key, in hexadecimal: what is kept of it. */
function digestOf(key: string): string {
  return hash('sha256', key, 'hex');
}

export interface NewApiKey {
  /** 1 to 100 characters, none of them a control character; no other key that is not revoked has it. */
  readonly name: string;
  /** Owner of what the key creates; `default` unless told, which a key with `repositories` can't have. */
  readonly userId?: string;
  /** `full` unless told. */
  readonly access?: KeyAccess;
  /** The repositories that it may list and clone, as patterns (`acme/*`, `group/**`); all of them unless given. */
  readonly repositories?: readonly string[] | null;
  /** `skep` unless told. */
  readonly format?: KeyFormat;
  /** Up to 100 years; for ever unless told. */
  readonly expiresInMs?: number;
}

export interface ApiKeys {
  /** Makes a key, which is kept nowhere. Rejects with {@link ApiKeyRefused} if its name is taken, or a value is not of the form. */
  create(key: NewApiKey): Promise<{ readonly key: string; readonly record: ApiKeyRecord }>;
  /** Every key, oldest first, expired and revoked ones too. */
  list(): Promise<readonly ApiKeyRecord[]>;
  /** Revokes the key with this id or name, at once. False when there is none that is not revoked. */
  revoke(idOrName: string): Promise<boolean>;
}

/** A key that is not made. The message says why to the person who asked for it. */
export class ApiKeyRefused extends Error {
  override readonly name = 'ApiKeyRefused';
}

export function createApiKeys(deps: { readonly keys: ApiKeyStore; readonly clock: Clock; readonly random: Random }): ApiKeys {
  const { keys, clock, random } = deps;
  return {
    async create({ name, userId = defaultUser, access = 'full', repositories = null, format = 'skep', expiresInMs }) {
      if (!isLabel(name)) throw new ApiKeyRefused("The key's name must have 1 to 100 characters, none of them a control character.");
      if (!isUserId(userId)) {
        const form = '1 to 100 characters, none of them a control character, and not begin with skep:';
        throw new ApiKeyRefused(`The key's user must have ${form}.`);
      }
      for (const pattern of repositories ?? []) requirePattern(pattern);
      if (repositories !== null && userId === defaultUser) {
        const why = 'it sees the conversations and sandboxes of its user, and most keys are of the default one';
        throw new ApiKeyRefused(`A key that is limited to repositories needs a user of its own, because ${why}; name one with --user.`);
      }
      if (expiresInMs !== undefined) requireLifetime(expiresInMs);
      const createdAt = clock.now();
      const expiresAt = expiresInMs === undefined ? null : createdAt + expiresInMs;
      const secret = random.secret();
      const key = format === 'e2b' ? `e2b_${Buffer.from(secret).toString('hex')}` : `skep_${secret}`;
      const times = { createdAt, expiresAt, revokedAt: null };
      const record = { id: random.id('key'), name, userId, access, repositories, hash: digestOf(key), ...times };
      if (!(await keys.insert(record))) {
        throw new ApiKeyRefused(`There is a key with the name ${JSON.stringify(name)} already; revoke it first, or choose another name.`);
      }
      return { key, record };
    },
    list: () => keys.list(),
    revoke: (idOrName) => keys.revoke(idOrName, clock.now()),
  };
}

function isLabel(text: string): boolean {
  return text.trim() !== '' && text.length <= 100 && !/\p{Cc}/u.test(text);
}

function requirePattern(pattern: string): void {
  if (isRepositoryPattern(pattern)) return;
  const form = 'for example acme/shop, acme/* or group/**, with ** at the end only, and without .git';
  throw new ApiKeyRefused(`${JSON.stringify(pattern)} is not a repository pattern; ${form}.`);
}

const longestLifetimeMs = 100 * 365 * 24 * 60 * 60 * 1000;

function requireLifetime(expiresInMs: number): void {
  if (!Number.isInteger(expiresInMs) || expiresInMs < 1 || expiresInMs > longestLifetimeMs) {
    throw new ApiKeyRefused(`The key's lifetime must be a whole number of milliseconds, from 1 to 100 years.`);
  }
}
