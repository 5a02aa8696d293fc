import type { Principal } from '../domain/principal.ts';
import type { ApiKeys } from './api-keys.ts';

/**
 * Identifies the caller of a request. It is called for every request, and repeatedly for an open stream, with many calls at once. The port
 * has no `close`: the creator of an adapter closes it if needed (see `Own` in `skep`).
 */
export interface Auth {
  /** One line for a person: which credentials are accepted. It is read once, and must not contain a secret. */
  readonly description: string;

  /**
   * Returns the principal of the credential: the exact value of the header, null if it is absent. A credential must stop working at once
   * when it expires or is revoked, so a result must not be cached past that moment. Any text must be accepted as input. Throws
   * `unauthorized` (none, unknown, expired, revoked) or `store_unavailable`. There is no abort signal; the adapter bounds its own time. A
   * principal is refused if its access is not one of `keyAccesses`, or if `isUserId` returns false for its user id, for example because it
   * begins with `skep:`.
   */
  authenticate(credential: string | null): Promise<Principal>;

  /**
   * The same for the SHA-256 of a credential, in hexadecimal. A link to a port contains it instead of the credential, and is valid as long
   * as the credential. Without this method, callers can't create such links.
   */
  authenticateDigest?(digest: string): Promise<Principal>;

  /**
   * Returns the digests of the valid credentials of the user and of administrators. A signed URL of E2B's clients names no credential, so
   * all possible ones are tried. Without this method, such URLs are refused.
   */
  digestsOf?(userId: string): Promise<readonly string[]>;

  /** Creates and revokes the credentials that `authenticate` accepts. Without it, callers can't do this, and login links don't work. */
  readonly keys?: ApiKeys;
}
