export interface Principal {
  /** The owner of what the caller creates. The caller sees only that, unless it is an administrator. See {@link isUserId}. */
  readonly userId: string;
  /** The key's name, for logs. */
  readonly keyName: string;
  readonly access: KeyAccess;
  /** The repositories that it may list and clone, as patterns of `matchesRepository`. Null or absent: all of them. */
  readonly repositories?: readonly string[] | null;
}

/** The beginning of the ids of Skep's own users. No caller has such an id. */
const reservedUserPrefix = 'skep:';

/** Returns true if a caller may be this user: 1 to 100 characters, not all blank, no control character, and not a user of Skep's own. */
export function isUserId(id: string): boolean {
  return id.trim() !== '' && id.length <= 100 && id.isWellFormed() && !/\p{Cc}/u.test(id) && !id.startsWith(reservedUserPrefix);
}

export const keyAccesses = ['full', 'read', 'admin'] as const;

/** `full` may see and change what its user owns, `read` only see it, and `admin` see and change what any user owns. */
export type KeyAccess = (typeof keyAccesses)[number];

export const keyFormats = ['skep', 'e2b'] as const;

/** The form of a key: `skep_...`, or `e2b_` and hexadecimal digits, which E2B's clients require. */
export type KeyFormat = (typeof keyFormats)[number];

/** Whose records a caller sees: those of one user, or of all users (null). */
export type OwnerScope = string | null;

export function scopeOf({ userId, access }: Principal): OwnerScope {
  return access === 'admin' ? null : userId;
}

export function isInScope(ownerId: string, scope: OwnerScope): boolean {
  return scope === null || ownerId === scope;
}

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
