import type { KeyAccess } from './principal.ts';

export const keyFormats = ['skep', 'e2b'] as const;

/** The form of a key: `skep_...`, or `e2b_` and hexadecimal digits, which E2B's clients require. */
export type KeyFormat = (typeof keyFormats)[number];

/** The record of an API key. The key itself is shown once, when it is created. Times are in milliseconds since the epoch. */
export interface ApiKeyRecord {
  readonly id: string;
  readonly name: string;
  readonly userId: string;
  readonly access: KeyAccess;
  readonly repositories: readonly string[] | null;
  /** SHA-256 of the key, in hexadecimal. A key is 32 random bytes, so a slow hash would add nothing. */
  readonly hash: string;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
}

/** The record of a code that can be exchanged once for a key of the user. The code itself is shown once, when it is created. */
export interface LoginCode {
  /** SHA-256 of the code, in hexadecimal. */
  readonly hash: string;
  readonly userId: string;
  readonly access: KeyAccess;
  /** In milliseconds since the epoch. */
  readonly expiresAt: number;
}

export const keyStates = ['valid', 'expired', 'revoked'] as const;

export type KeyState = (typeof keyStates)[number];

export function keyStateOf({ revokedAt, expiresAt }: ApiKeyRecord, now: number): KeyState {
  if (revokedAt !== null) return 'revoked';
  return expiresAt === null || now < expiresAt ? 'valid' : 'expired';
}

export function isKeyValid(key: ApiKeyRecord, now: number): boolean {
  return keyStateOf(key, now) === 'valid';
}

/** The cause of `unauthorized` if the key is known. It is for the log only: a caller must not learn whether a key was ever valid. */
export class KeyRefusal extends Error {
  readonly key: Pick<ApiKeyRecord, 'id' | 'name' | 'userId'>;
  readonly state: KeyState;

  constructor({ id, name, userId }: ApiKeyRecord, state: KeyState) {
    super(`${state} ${id}`);
    this.key = { id, name, userId };
    this.state = state;
  }
}
