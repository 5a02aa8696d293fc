import type { KeyAccess } from '../domain/principal.ts';
import type { ApiKeyRecord, KeyFormat } from '../domain/api-key.ts';

export interface NewApiKey {
  /** 1 to 100 characters, no control characters. Unique among the valid keys. */
  readonly name: string;
  /** The user who owns what the key creates. Default: `default`, which is not allowed with `repositories`. */
  readonly userId?: string;
  /** Default: `full`. */
  readonly access?: KeyAccess;
  /** The repositories that it may list, clone and publish to, as patterns (`acme/*`, `group/**`). Default: all of them. */
  readonly repositories?: readonly string[] | null;
  /** Default: `skep`. */
  readonly format?: KeyFormat;
  /** Up to 100 years. Default: it never expires. */
  readonly expiresInMs?: number;
}

/** A new key, which is stored nowhere, and its record. */
export interface CreatedApiKey {
  readonly key: string;
  readonly record: ApiKeyRecord;
}

/** Creates and revokes keys, and creates the codes that people log in with. Failure: `store_unavailable`. */
export interface ApiKeys {
  /** Throws `key_name_taken`, or `invalid_request` if a value is not valid. */
  create(key: NewApiKey): Promise<CreatedApiKey>;

  /** Returns every key, oldest first, expired and revoked ones too. */
  list(): Promise<readonly ApiKeyRecord[]>;

  /** Revokes the key with this id or name, at once. Returns false if there is none that is not revoked. */
  revoke(idOrName: string): Promise<boolean>;

  /** Returns a code that can be exchanged once for a key of the user, within a few minutes. Throws `invalid_request`. */
  createLoginCode(login: Pick<NewApiKey, 'userId' | 'access'>): Promise<{ readonly code: string; readonly expiresAt: number }>;

  /** Returns a new key for the code. The code is invalid from then on. Throws `login_code_invalid`. */
  exchangeLoginCode(code: string): Promise<CreatedApiKey>;
}
