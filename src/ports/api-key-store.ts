import type { ApiKeyRecord } from '../domain/principal.ts';

/** Keeps the records of API keys, never the keys. A write is durable when its method resolves. Failure: `store_unavailable`. */
export interface ApiKeyStore {
  /** Adds a record. Returns false if a key that is not revoked has this name. */
  insert(key: ApiKeyRecord): Promise<boolean>;

  /** Returns the record with this hash, also an expired or revoked one; null if there is none. */
  findByHash(hash: string): Promise<ApiKeyRecord | null>;

  /** Returns every record, oldest first. */
  list(): Promise<readonly ApiKeyRecord[]>;

  /** Revokes the key with this id or name. Returns false if there is none that is not revoked. */
  revoke(idOrName: string, revokedAt: number): Promise<boolean>;
}
