/** Who makes a request. */
export interface Principal {
  /** Owns what it creates, and sees only that. */
  readonly userId: string;
  /** The key's name, for logs. */
  readonly keyName: string;
  readonly access: KeyAccess;
}

export const keyAccesses = ['full', 'read'] as const;

/** `read` may see everything that its user owns, and change nothing. */
export type KeyAccess = (typeof keyAccesses)[number];

/** The record of an API key. The key itself is shown once, when it is made. Times are in milliseconds since the epoch. */
export interface ApiKeyRecord {
  readonly id: string;
  readonly name: string;
  readonly userId: string;
  readonly access: KeyAccess;
  /** SHA-256 of the key, in hexadecimal. A key is 32 random bytes, so a slow hash would add nothing. */
  readonly hash: string;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
}

/** Returns true while the key can be used. */
export function isKeyValid(key: ApiKeyRecord, now: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || now < key.expiresAt);
}
