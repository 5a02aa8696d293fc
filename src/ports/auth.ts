import type { Principal } from '../domain/principal.ts';
import type { ApiKeys } from './api-keys.ts';

/**
 * Identifies who makes a request. It is asked for every request, and again and again for an open stream, with many calls at once. The
 * port has no `close`: an adapter that holds something open is closed by whoever made it (see `Own` in `skep`).
 */
export interface Auth {
  /** One line for a person: which credentials it accepts. It is read once and must not contain a secret. */
  readonly description: string;

  /**
   * Returns the principal of the credential: the exact value of the header, null if it is absent. A credential must stop working at
   * once when it expires or is revoked, so a result must not be cached past that moment. Any text must be accepted as input. Throws
   * `unauthorized` (none, unknown, expired, revoked) or `store_unavailable`. There is no abort signal; the adapter bounds its own time.
   * A principal whose user id `isUserId` refuses (it begins with `skep:`, say) lets nobody in.
   */
  authenticate(credential: string | null): Promise<Principal>;

  /**
   * The same by the SHA-256 of a credential, in hexadecimal. A link to a port holds that instead of the credential, and ends with it. If an
   * adapter leaves this out, callers can't make such links.
   */
  authenticateDigest?(digest: string): Promise<Principal>;

  /**
   * Returns the digests of the credentials by which the user, or an administrator, is let in now. A signed URL of E2B's clients names no
   * credential, so all that may have made it are tried. An adapter that leaves this out takes no such URLs.
   */
  digestsOf?(userId: string): Promise<readonly string[]>;

  /** Makes and revokes what `authenticate` accepts. If an adapter leaves this out, callers can't, and nobody logs in by a link. */
  readonly keys?: ApiKeys;
}
