import type { ApiKeyRecord, KeyAccess, KeyFormat } from '../domain/principal.ts';

export interface NewApiKey {
  /** 1 to 100 characters, none of them a control character; no other key that is not revoked has it. */
  readonly name: string;
  /** Owner of what the key creates; default: `default`, which a key with `repositories` can't have. */
  readonly userId?: string;
  /** Default: `full`. */
  readonly access?: KeyAccess;
  /** The repositories that it may list and clone, as patterns (`acme/*`, `group/**`). Default: all of them. */
  readonly repositories?: readonly string[] | null;
  /** Default: `skep`. */
  readonly format?: KeyFormat;
  /** Up to 100 years. Default: it never expires. */
  readonly expiresInMs?: number;
}

/** A key, which is kept nowhere, and what is kept of it. */
export interface MadeApiKey {
  readonly key: string;
  readonly record: ApiKeyRecord;
}

/** Makes and revokes keys, and the codes that people log in by. Failure: `store_unavailable`. */
export interface ApiKeys {
  /** Throws `key_name_taken`, or `invalid_request` if a value is not of the form. */
  create(key: NewApiKey): Promise<MadeApiKey>;

  /** Returns every key, oldest first, expired and revoked ones too. */
  list(): Promise<readonly ApiKeyRecord[]>;

  /** Revokes the key with this id or name, at once. Returns false if there is none that is not revoked. */
  revoke(idOrName: string): Promise<boolean>;

  /** Returns a code that is exchanged for a key of the user, once, within a few minutes. Throws `invalid_request`. */
  createLoginCode(login: Pick<NewApiKey, 'userId' | 'access'>): Promise<{ readonly code: string; readonly expiresAt: number }>;

  /** Returns a new key for the code, which is worth nothing from then on. Throws `login_code_invalid`. */
  exchangeLoginCode(code: string): Promise<MadeApiKey>;
}
