import { parseRepositoryName } from './repository-name.ts';

export interface Principal {
  /** The owner of what the caller creates. The caller sees only that, unless it is an administrator. See {@link isUserId}. */
  readonly userId: string;
  /** The key's name, for logs. */
  readonly keyName: string;
  readonly access: KeyAccess;
  /** The repositories that it may list and clone, as patterns of {@link matchesRepository}. Null or absent: all of them. */
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

/**
 * Returns true if one of the patterns matches the repository's path. `*` matches any characters within a segment; `**`, as the last of
 * several segments, matches one or more segments: `acme/*`, `group/**`. If a pattern begins with one of the `configured` hosts, it matches
 * only if that host is one of the provider's `hosts` (lower case). The case of letters must be that of the git host.
 */
export function matchesRepository(
  patterns: readonly string[], path: string, hosts: readonly string[], configured: readonly string[],
): boolean {
  const segments = path.split('/');
  return patterns.some((pattern) => {
    const [first = '', ...rest] = pattern.split('/');
    const host = first.toLowerCase();
    if (rest.length > 0 && configured.includes(host)) return hosts.includes(host) && matchesSegments(rest, segments);
    return rest.length === 0 ? matchesSegment(first, path) && segments.length === 1 : matchesSegments([first, ...rest], segments);
  });
}

function matchesSegments(patterns: readonly string[], segments: readonly string[]): boolean {
  const isOpen = patterns.at(-1) === '**';
  const fixed = isOpen ? patterns.slice(0, -1) : patterns;
  const fits = isOpen ? segments.length > fixed.length : segments.length === fixed.length;
  return fits && fixed.every((pattern, index) => matchesSegment(pattern, segments[index] ?? ''));
}

/** Matches each part between two `*` at its first occurrence, so the time is linear for any pattern. */
function matchesSegment(pattern: string, segment: string): boolean {
  const [head = '', ...parts] = pattern.split('*');
  const tail = parts.pop();
  if (tail === undefined) return segment === head;
  if (!segment.startsWith(head) || !segment.endsWith(tail)) return false;
  let at = head.length;
  for (const part of parts) {
    const found = segment.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= segment.length - tail.length;
}

/** Returns true if the pattern can match a repository: a valid name without the ending `.git`, with `**` only as its last segment. */
export function isRepositoryPattern(pattern: string): boolean {
  const parsed = parseRepositoryName(pattern);
  if (!parsed.ok || pattern.endsWith('.git')) return false;
  const { segments } = parsed;
  return segments.every((segment, index) => !segment.includes('**') || (segment === '**' && index > 0 && index === segments.length - 1));
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
