export interface Principal {
  /** The owner of what the caller creates. The caller sees only that, unless it is an administrator. See {@link isUserId}. */
  readonly userId: string;
  /** The key's name, for logs. */
  readonly keyName: string;
  readonly access: KeyAccess;
  /** The repositories that it may list, clone and publish to, as patterns of `matchesRepository`. Null or absent: all of them. */
  readonly repositories?: readonly string[] | null;
  /** When the credential expires, in milliseconds since the epoch. Null or absent: never, or it is not known. */
  readonly expiresAt?: number | null;
}

/** The owner of the static key and of every key that names no user. All these keys see the same conversations and sandboxes. */
export const defaultUser = 'default';

/** The beginning of the ids of Skep's own users. No caller has such an id. */
const reservedUserPrefix = 'skep:';

/** Returns true if a caller may be this user: 1 to 100 characters, not all blank, no control character, and not a user of Skep's own. */
export function isUserId(id: string): boolean {
  return id.trim() !== '' && id.length <= 100 && id.isWellFormed() && !/\p{Cc}/u.test(id) && !id.startsWith(reservedUserPrefix);
}

export const keyAccesses = ['full', 'read', 'admin'] as const;

/** `full` may see and change what its user owns, `read` only see it, and `admin` see and change what any user owns. */
export type KeyAccess = (typeof keyAccesses)[number];

/** Whose records a caller sees: those of one user, or of all users (null). */
export type OwnerScope = string | null;

/** Who asks: the caller of a request, or the id of a user who sees only its own records. */
export type Caller = string | Pick<Principal, 'userId' | 'access'>;

export function userIdOf(caller: Caller): string {
  return typeof caller === 'string' ? caller : caller.userId;
}

/** Null is a caller that sees the records of all users. Only use cases that record no user take it. */
export function scopeOf(caller: Caller | null): OwnerScope {
  return caller === null || (typeof caller !== 'string' && caller.access === 'admin') ? null : userIdOf(caller);
}

export function isInScope(ownerId: string, caller: Caller | null): boolean {
  const scope = scopeOf(caller);
  return scope === null || ownerId === scope;
}
