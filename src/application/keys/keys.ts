import { Failure } from '../../domain/failure.ts';
import { isInScope, type Principal } from '../../domain/principal.ts';
import type { ApiKeyRecord } from '../../domain/api-key.ts';
import type { ApiKeys, CreatedApiKey, NewApiKey } from '../../ports/api-keys.ts';
import type { Auth } from '../../ports/auth.ts';

/** The use cases of keys. Each throws `keys_unsupported` if Skep does not keep the keys of the deployment. */
export class Keys {
  readonly #auth: Auth;

  constructor(auth: Auth) {
    this.#auth = auth;
  }

  /**
   * Makes a key, by default for the caller's user. Only administrators may do this, so that a stolen key can't make a key that outlives it.
   * Throws `forbidden` (also if the caller's key is limited to repositories), `key_name_taken` or `invalid_request`.
   */
  async create(caller: Principal, asked: NewApiKey): Promise<CreatedApiKey> {
    const { userId = caller.userId } = asked;
    if (isLimited(caller)) throw new Failure('forbidden', { action: 'make a key', access: 'admin', isUnlimited: true });
    if (caller.access !== 'admin') throw new Failure('forbidden', { action: 'make a key', access: 'admin' });
    return await this.#keys().create({ ...asked, userId });
  }

  /** Returns all keys to an administrator, otherwise the user's keys except `admin` keys. Oldest first, including invalid keys. */
  async list(caller: Principal): Promise<readonly ApiKeyRecord[]> {
    const keys = await this.#keys().list();
    return keys.filter(({ userId, access }) => isInScope(userId, caller) && (access !== 'admin' || caller.access === 'admin'));
  }

  /**
   * Revokes the key with this id, or this name, at once, and returns its record as it was. Idempotent by id. A key that is limited to
   * repositories can revoke only itself, so that a stolen one can't lock out its user. Throws `key_not_found`, and `forbidden` if such a
   * key would revoke another one.
   */
  async revoke(caller: Principal, idOrName: string): Promise<ApiKeyRecord> {
    const seen = await this.list(caller);
    const key = seen.find(({ id }) => id === idOrName) ?? seen.find(({ name, revokedAt }) => name === idOrName && revokedAt === null);
    if (key === undefined) throw new Failure('key_not_found', { id: idOrName });
    const isOwn = key.name === caller.keyName && key.userId === caller.userId && key.revokedAt === null;
    if (isLimited(caller) && !isOwn) {
      const access = caller.access === 'admin' ? 'admin' : 'full';
      throw new Failure('forbidden', { action: 'revoke another key', access, isUnlimited: true });
    }
    await this.#keys().revoke(key.id);
    return key;
  }

  /** Exchanges the code of a login link for a key. Throws `login_code_invalid`. */
  async logIn(code: string): Promise<CreatedApiKey> {
    return await this.#keys().exchangeLoginCode(code);
  }

  #keys(): ApiKeys {
    if (this.#auth.keys === undefined) throw new Failure('keys_unsupported', {});
    return this.#auth.keys;
  }
}

function isLimited({ repositories = null }: Principal): boolean {
  return repositories !== null;
}
