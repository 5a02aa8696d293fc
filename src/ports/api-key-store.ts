import type { ApiKeyRecord } from '../domain/principal.ts';

/**
 * Keeps what is known of API keys, never the keys themselves. What a method has answered is durable. Failure:
 * `store_unavailable`.
 */
export interface ApiKeyStore {
  /** Adds a record. False when a key that is not revoked has this name already. */
  insert(key: ApiKeyRecord): Promise<boolean>;

  /** The record with this hash, an expired or revoked one too; null when there is none. */
  findByHash(hash: string): Promise<ApiKeyRecord | null>;

  /** Every record, oldest first. */
  list(): Promise<readonly ApiKeyRecord[]>;

  /** Revokes the key with this id or name. False when there is none that is not revoked. */
  revoke(idOrName: string, revokedAt: number): Promise<boolean>;
}
