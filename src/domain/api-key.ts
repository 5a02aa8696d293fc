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

export function isKeyValid(key: ApiKeyRecord, now: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || now < key.expiresAt);
}
