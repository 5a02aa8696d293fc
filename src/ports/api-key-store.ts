import type { ApiKeyRecord, LoginCode } from '../domain/api-key.ts';

/**
 * Keeps the records of API keys and login codes, never the keys and codes themselves. A write is durable when its method resolves.
 * Failure: `store_unavailable`.
 */
export interface ApiKeyStore {
  /**
   * Adds a record. Returns false if a key has this name that is neither revoked nor expired when the new one is created. Marks an expired
   * key with this name as revoked: `revoke` also takes a name, so only one key with a name may be not revoked.
   */
  insert(key: ApiKeyRecord): Promise<boolean>;

  /** Returns the record with this hash, also an expired or revoked one; null if there is none. */
  findByHash(hash: string): Promise<ApiKeyRecord | null>;

  /** Returns every record, oldest first. */
  list(): Promise<readonly ApiKeyRecord[]>;

  /** Revokes the key with this id or name. Returns false if there is none that is not revoked. */
  revoke(idOrName: string, revokedAt: number): Promise<boolean>;

  /** Adds the code, and deletes those that have expired by `now`. */
  insertLoginCode(code: LoginCode, now: number): Promise<void>;

  /**
   * Deletes the code with this hash and returns it; null if there is none, or it has expired by `now`. Only one of many callers gets it.
   */
  takeLoginCode(hash: string, now: number): Promise<LoginCode | null>;
}
